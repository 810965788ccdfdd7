"""One product and one browser for each test process; a page for each test, logged in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from .house import PASSWORD, House, open_house

TIMEOUT_MS = 30_000


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with open_house(os.environ["DATABASE_URL"], tmp_path_factory.mktemp("e2e")) as opened:
        yield opened


@pytest.fixture(scope="module")
def session(house: House, chromium: Any) -> dict[str, Any]:
    """Cookies of somebody who has logged in through the page."""
    context = chromium.new_context(base_url=house.url)
    page = context.new_page()
    log_in(page)
    state = context.storage_state()
    context.close()
    return state


def log_in(page: Any, then: str = "/") -> None:
    page.set_default_timeout(TIMEOUT_MS)
    page.goto(then)
    assert urlsplit(page.url).path == "/login/"
    page.fill("#id_username", "admin")
    page.fill("#id_password", PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: urlsplit(url).path == then)


@pytest.fixture
def open_page(house: House, chromium: Any, session: dict[str, Any]) -> Iterator[Callable[..., Any]]:
    """``open_page(path, width=…, scheme=…, javascript=…, **context)``: a page of a browser that nobody used before.

    What the console calls an error, and a request to any other host, fail the test, unless it holds the text ``allow``.
    """
    contexts: list[Any] = []
    faults: list[str] = []

    def visit(
        path: str = "/",
        *,
        width: int = 1280,
        scheme: str = "light",
        javascript: bool = True,
        allow: str = "\0",
        **more: Any,
    ) -> Any:
        def fault(text: str) -> None:
            if allow not in text:
                faults.append(text)

        context = chromium.new_context(
            base_url=house.url,
            viewport={"width": width, "height": 860},
            color_scheme=scheme,
            java_script_enabled=javascript,
            storage_state=session,
            **more,
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("console", lambda message: fault(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: fault(str(error)))
        page.on("request", lambda asked: fault(asked.url) if not asked.url.startswith(house.url) else None)
        page.goto(path)
        return page

    yield visit
    for context in contexts:
        context.close()
    assert faults == []
