"""Looks after the logs that a process writes: a thread that ships them, since a store may take its time.

It has a database connection of its own, and only while it has something to ship to the database.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

from scheduler_app.conf import Conf
from scheduler_app.log_store.ship import ship
from scheduler_app.log_store.stores import DatabaseStore, Store
from scheduler_app.log_store.sweep import Sweep
from scheduler_app.models import db

log = logging.getLogger(__name__)

#: Objects that are written at once; one takes a network's time.
_PARALLEL = 8
_SWEEP_STEP = 200
_SWEEP_REST_SECONDS = 3600.0
_LONGEST_BACKOFF_SECONDS = 60.0
#: Ended logs that wait for a store which is away. The next sweep ships those beyond, if they were begun.
_MOST_WAITING = 20_000


class Keeper:
    """``stage`` as in ``pieces``. ``sweeps``: it also deletes old logs of this machine; one process of a machine does.

    ``wall`` and ``monotonic`` are the process's clocks.
    """

    def __init__(
        self,
        values: Conf,
        store: Store | None,
        stage: int,
        wall: Callable[[], datetime],
        monotonic: Callable[[], float],
        *,
        sweeps: bool = False,
    ) -> None:
        self._store, self._stage, self._wall, self._monotonic = store, stage, wall, monotonic
        self._folder, self._days, self._pause = values.log_folder, values.log_days, values.log_upload_seconds
        self._changed = threading.Condition()
        self._growing: dict[Path, int] = {}
        self._ended: dict[Path, int] = {}
        self._failures = 0
        self._stopping = False
        self._sweep: Sweep | None = None
        self._next_sweep = monotonic()
        self._sweeps = sweeps and bool(store or values.log_days)
        self._thread = threading.Thread(target=self._run, name="log-keeper", daemon=True)
        self._needed = store is not None or self._sweeps

    def start(self) -> None:
        if self._needed:
            self._thread.start()

    def follow(self, file: Path, fence: int) -> None:
        """A hand-out begins to write there."""
        if self._store is not None:
            with self._changed:
                self._growing[file] = fence

    def finish(self, file: Path) -> None:
        """Its last line is written."""
        with self._changed:
            fence = self._growing.pop(file, None)
            if fence is not None and len(self._ended) < _MOST_WAITING:
                self._ended[file] = fence
                self._changed.notify()

    def stop(self, seconds: float) -> None:
        """Ships what is left, for at most so long."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or (self._ended and not self._failures), self._wait())
                stopping = self._stopping
            try:
                self.work()
                self._failures = 0
                if self._is_idle():
                    db.close()
            except Exception as error:
                # Whatever a driver raises: what was not shipped is still there, and is tried again.
                self._failures += 1
                log.warning("Logs cannot be shipped (%s: %s); they are tried again", type(error).__name__, error)
                db.close()
            if stopping:
                db.close()
                return

    def _is_idle(self) -> bool:
        with self._changed:
            return not self._growing and not self._ended

    def _wait(self) -> float:
        return min(_LONGEST_BACKOFF_SECONDS, self._pause * 2.0 ** min(self._failures, 10))

    def work(self) -> int:
        """One pass: ships what there is, sweeps a little; how many bytes it shipped. Raises what the store does."""
        shipped = self._ship_all() if self._store is not None else 0
        if self._sweeps:
            self._sweep_some()
        return shipped

    def _ship_all(self) -> int:
        with self._changed:
            jobs = [(file, fence, True) for file, fence in self._ended.items()]
            jobs += [(file, fence, False) for file, fence in self._growing.items()]
        if isinstance(self._store, DatabaseStore) or len(jobs) < 2:
            return self._ship_in_turn(jobs)
        with ThreadPoolExecutor(_PARALLEL, thread_name_prefix="log-keeper") as pool:
            return sum(pool.map(self._ship_one, jobs))

    def _ship_in_turn(self, jobs: list[tuple[Path, int, bool]]) -> int:
        """One that cannot be read does not keep the others; a database that refuses refuses them all."""
        shipped, failed = 0, None
        for job in jobs:
            try:
                shipped += self._ship_one(job)
            except (db.DatabaseError, db.InterfaceError):
                raise
            except Exception as error:
                failed = error
        if failed is not None:
            raise failed
        return shipped

    def _ship_one(self, job: tuple[Path, int, bool]) -> int:
        file, fence, ended = job
        assert self._store is not None
        shipped = ship(self._store, self._folder, file, fence, self._stage, self._wall(), ended=ended)
        if ended:
            with self._changed:
                self._ended.pop(file, None)
        return shipped

    def _sweep_some(self) -> None:
        if self._sweep is None:
            if self._monotonic() < self._next_sweep:
                return
            self._sweep = Sweep(self._folder, self._days, self._store)
        if not self._sweep.step(_SWEEP_STEP, self._wall()):
            if self._sweep.deleted or self._sweep.shipped:
                log.info("%d old logs deleted, %d bytes shipped late", self._sweep.deleted, self._sweep.shipped)
            self._sweep, self._next_sweep = None, self._monotonic() + _SWEEP_REST_SECONDS
