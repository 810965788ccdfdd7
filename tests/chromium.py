"""Debian's Chromium for the tests that look at pages. Left out where it is missing, but not where CI runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

EXECUTABLE = os.environ.get("SCHEDULER_TEST_CHROMIUM", "") or shutil.which("chromium") or "/usr/bin/chromium"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def running() -> Iterator[Any]:
    """A browser with a profile of its own, thrown away at the end."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _missing("Playwright is not installed: pip install -r requirements-dev.txt")
    if not os.path.exists(EXECUTABLE):
        _missing(f"there is no {EXECUTABLE}: apt-get install chromium, or set SCHEDULER_TEST_CHROMIUM")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright's own loop runs in this thread
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=EXECUTABLE, args=FLAGS)
        yield browser
        browser.close()
    os.environ.pop("DJANGO_ALLOW_ASYNC_UNSAFE")


def _missing(why: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(why)
    pytest.skip(why)
