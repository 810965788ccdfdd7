"""The world commits: it is played outside of a test's transaction, and leaves the database as it found it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import TransactionTestCase

from .aside import Aside
from .play import stage


@pytest.fixture(scope="module")
def aside(django_db_setup: None, django_db_blocker: Any) -> Iterator[Aside]:
    """The stage of a world. Its log lines are its history; those of the scheduler would drown it."""
    logger = logging.getLogger("scheduler_app")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch, stage() as opened:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: None)  # the stage clears up by itself
        yield opened
    logger.setLevel(level)
