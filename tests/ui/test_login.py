"""The doors of the dashboard and of the Django admin: nobody tries out passwords there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.cache import cache
from django.test import Client

pytestmark = pytest.mark.django_db
DOORS = ("/login/", "/admin/login/")


@pytest.fixture(autouse=True)
def _three(settings: Any) -> Iterator[None]:
    settings.SCHEDULER = {**settings.SCHEDULER, "login_failures": 3}
    get_user_model().objects.create_superuser("zoe", password="right")
    cache.clear()
    yield
    cache.clear()


def knock(client: Client, door: str, password: str) -> str:
    """ "in", "wrong" or "shut"."""
    answer = client.post(door, {"username": "zoe", "password": password, "next": "/"})
    if answer.status_code == 302:
        return "in"
    return "shut" if "Too many failed logins" in answer.content.decode() else "wrong"


@pytest.mark.parametrize("door", DOORS)
def test_guessing_is_stopped_for_that_name_and_address_alone(door: str) -> None:
    client = Client()
    assert [knock(client, door, "guess") for _ in range(4)] == ["wrong", "wrong", "wrong", "shut"]
    assert knock(client, door, "right") == "shut"
    assert knock(Client(REMOTE_ADDR="10.0.0.9"), door, "right") == "in"


def test_the_doors_count_together_and_a_login_forgives() -> None:
    client = Client()
    assert [knock(client, DOORS[0], "guess"), knock(client, DOORS[1], "guess")] == ["wrong", "wrong"]
    assert knock(Client(), DOORS[0], "right") == "in"
    assert [knock(client, DOORS[n % 2], "guess") for n in range(4)] == ["wrong", "wrong", "wrong", "shut"]
