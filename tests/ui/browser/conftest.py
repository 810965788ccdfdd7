"""A real browser on a real server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import call_command


@pytest.fixture(autouse=True)
def _clock() -> None:
    """Here time goes on: the browser waits for things."""


@pytest.fixture(autouse=True, scope="module")
def _emptied(django_db_setup: None, django_db_blocker: Any) -> None:
    """What the migrations wrote is written again under its old numbers before each test here; a transactional test of
    another module may have left the same content types under new ones."""
    with django_db_blocker.unblock():
        call_command("flush", interactive=False, inhibit_post_migrate=True, verbosity=0)


@pytest.fixture
def open_page(chromium: Any, live_server: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page as the administrator "ann": ``open_page(path, width=…, scheme=…, javascript=…)``.

    Whatever the console calls an error (a breach of the content policy, a failed request) fails the test.
    """
    get_user_model().objects.create_superuser("ann", password="secret-of-ann")
    contexts: list[Any] = []
    errors: list[str] = []

    def visit(path: str, *, width: int = 1280, scheme: str = "light", javascript: bool = True, **more: Any) -> Any:
        context = chromium.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 860},
            color_scheme=scheme,
            java_script_enabled=javascript,
            **more,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"/login/?next={path}")
        page.fill("#id_username", "ann")
        page.fill("#id_password", "secret-of-ann")
        page.click("button")
        page.wait_for_url(f"**{path}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert errors == []
