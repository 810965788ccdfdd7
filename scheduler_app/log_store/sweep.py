"""Deletes this machine's old logs, and ships what a process that died had not shipped. A few files at a time."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from scheduler_app.log_store.ship import SUFFIX, ship, unshipped
from scheduler_app.log_store.stores import Store

_OURS = re.compile(r"(attempt=\d+|callback=.+)\.log(\.shipped)?")
log = logging.getLogger(__name__)

#: A log that somebody still writes is left to whoever does.
_QUIET_SECONDS = 60.0


class Sweep:
    """One walk over the log folder. ``days`` 0: nothing is deleted."""

    def __init__(self, folder: Path, days: int, store: Store | None) -> None:
        self._folder, self._days, self._store = folder, days, store
        self._entries = self._walk()
        self.deleted = self.shipped = 0

    def step(self, limit: int, now: datetime) -> bool:
        """Looks at so many files and folders at most; False when the walk is over. Raises what the store does."""
        oldest = (now - timedelta(days=self._days)).timestamp() if self._days else 0.0
        for _ in range(limit):
            path = next(self._entries, None)
            if path is None:
                return False
            try:
                self._look(path, oldest, now)
            except FileNotFoundError:
                continue
        return True

    def _walk(self) -> Iterator[Path]:
        """Logs and their folders, deepest first; whatever else lies in the folder is not ours."""
        tops = self._folder.glob("dag_id=*") if self._folder.is_dir() else ()
        for top in tops:
            for root, _, names in os.walk(top, topdown=False):
                yield from (Path(root, name) for name in names if _OURS.fullmatch(name))
                yield Path(root)

    def _look(self, path: Path, oldest: float, now: datetime) -> None:
        written = path.stat().st_mtime
        if path.is_dir():
            if written < oldest:
                self._remove_if_empty(path)
        elif written < oldest:
            path.unlink()
            self.deleted += not path.name.endswith(SUFFIX)
        elif self._store is not None and not path.name.endswith(SUFFIX) and written < now.timestamp() - _QUIET_SECONDS:
            self._ship_rest(self._store, path, now)

    def _remove_if_empty(self, folder: Path) -> None:
        try:
            folder.rmdir()
        except OSError:
            return

    def _ship_rest(self, store: Store, file: Path, now: datetime) -> None:
        progress = unshipped(file)
        if progress is not None:
            self.shipped += ship(store, self._folder, file, progress.fence, progress.stage, now, ended=True)
