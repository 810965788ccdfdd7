"""The scene of a test, and quiet logs: what a test provokes would drown what it says."""

from __future__ import annotations

import logging

import pytest

from tests.scheduler.scene import Scene


@pytest.fixture
def scene(db: None) -> Scene:
    return Scene()


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("scheduler_app.scheduler").setLevel(logging.CRITICAL)
