"""A runner's dealings with a database that may be away for a while: back off, close, try again; never die of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from django.db import Error

from scheduler_app.models import db

log = logging.getLogger(__name__)

T = TypeVar("T")

_FIRST_SECONDS = 0.1
_LONGEST_SECONDS = 5.0
_PAUSE_SECONDS = 1.0


class DatabaseAway(Exception):
    """Not now: the work was not done and may be tried again after the back-off."""


class Database:
    """`monotonic` in seconds. ``work`` functions get the database's clock as ``now``."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._failures = 0
        self._now: datetime | None = None
        self.retry_at = 0.0

    @property
    def away(self) -> bool:
        return self._monotonic() < self.retry_at

    def next_pass(self) -> None:
        """The clock is read again: once a pass, by the first who needs it."""
        self._now = None

    def pause(self) -> None:
        """Leave the database alone for a moment: something failed that would fail again at once."""
        self.retry_at = max(self.retry_at, self._monotonic() + _PAUSE_SECONDS)

    def do(self, work: Callable[[datetime], T]) -> T:
        """Raises DatabaseAway for what is transient; every other error passes."""
        if self.away:
            raise DatabaseAway
        try:
            if self._now is None:
                self._now = db.clock()
            result = work(self._now)
        except Error as error:
            if not db.is_transient(error):
                raise
            self._failures += 1
            self.retry_at = self._monotonic() + min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0**self._failures)
            log.warning("The database refused (%s); trying again", str(error).strip().partition("\n")[0])
            db.close()
            raise DatabaseAway from error
        self._failures = 0
        return result
