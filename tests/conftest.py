"""What every test may use. Databases come from pytest-django: a throw-away one for each worker."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests import chromium as browser

SERVICES = {
    "redis": ("SCHEDULER_TEST_REDIS_URL", "redis://127.0.0.1:6379/0"),
    "rabbitmq": ("SCHEDULER_TEST_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1:5672//"),
}


def service_url(name: str) -> str:
    """The address of a service, if it answers. Otherwise the test is left out, and fails where CI runs it."""
    variable, default = SERVICES[name]
    url = os.environ.get(variable, default)
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=2).close()
    except OSError as error:
        message = f"no {name} at {address.hostname}:{address.port} ({error}); set {variable}"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return url


@pytest.fixture(scope="session")
def redis_url() -> str:
    return service_url("redis")


@pytest.fixture(scope="session")
def rabbitmq_url() -> str:
    return service_url("rabbitmq")


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> None:
    """Every test database refuses a change of state that is not a legal move of the one writer."""
    from scheduler_app.models import guard

    with django_db_blocker.unblock():
        guard.install()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """One browser for each module; a test makes a context of its own in it. (While it runs, its loop is that of the
    thread: in a session's fixture no later test of the process could call ``asyncio.run``.)"""
    with browser.running() as opened:
        yield opened
