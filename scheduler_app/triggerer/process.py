"""The triggerer as a process: claims triggers, has children run them, lets the waiting tasks go on."""

from __future__ import annotations

import contextlib
import itertools
import logging
import signal
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from scheduler_app import inspection, metrics
from scheduler_app.conf import Conf, conf
from scheduler_app.log_store import stores
from scheduler_app.log_store.keeper import Keeper
from scheduler_app.log_store.pieces import TRIGGER
from scheduler_app.models import db
from scheduler_app.models.lease import Lease, LeaseLost, bury_neighbours
from scheduler_app.runner.stop_bell import StopBell
from scheduler_app.supervisor.base import Base, Exit
from scheduler_app.supervisor.child import Clocks
from scheduler_app.supervisor.environment import inherited
from scheduler_app.supervisor.events import Events

from . import rows
from .child import TriggerChild
from .rows import Result, Waiting

log = logging.getLogger(__name__)

_MEGABYTE = 1024 * 1024
_DATABASE_RETRY_SECONDS = 2.0
#: Longest time in which a signal to stop is not noticed.
_NAP_SECONDS = 0.25
_BASE_IDLE_SECONDS = 60.0
#: However many tasks are taken from their triggers, it looks no more often than this.
_EARLY_RENEWAL_SECONDS = 0.2
#: What it may take at its end to ship the last lines of logs.
_LOGS_SECONDS = 5.0
#: Processes of its own that a trigger may lose before it counts as the cause.
_LOST_ALONE = 2

#: Bundle, version, part: their triggers share a process. Part 0 takes the new ones, the others are left from a death.
Group = tuple[str, str | None, int]


def run_triggerer(stop: threading.Event | None = None) -> None:
    """Runs until `stop` is set (without one: until SIGTERM or SIGINT). A lost lease starts it again as a new job."""
    stop = stop or _stop_on_signals()
    while not stop.is_set():
        try:
            _live_once(stop)
            return
        except LeaseLost as error:
            log.error("%s Its triggers go to another triggerer; this one starts afresh.", error)
        except (db.DatabaseError, db.InterfaceError) as error:
            if not db.is_transient(error):
                raise
            log.warning("The database refused, trying again: %s", str(error).strip())
            db.close()
        stop.wait(_DATABASE_RETRY_SECONDS)


def _live_once(stop: threading.Event) -> None:
    values = conf()
    lease = Lease(
        "TriggererJob",
        heartbeat_seconds=values.heartbeat_seconds,
        lease_seconds=values.lease_seconds,
        capacity=values.triggerer_capacity,
    )
    with lease:
        triggerer = Triggerer(values, inherited(), lease.job_id, time.monotonic)
        with contextlib.closing(triggerer):
            inspection.answer_signal(lambda: [*triggerer.describe(), f"lease: {lease.describe()}"])
            while not stop.is_set():
                lease.check()
                triggerer.step(_NAP_SECONDS, db.clock)
            triggerer.release()


class Triggerer:
    """Without its process: :meth:`step` does what is due. One base; one child of it for each bundle version in use."""

    def __init__(self, values: Conf, environ: Mapping[str, str], job_id: int, monotonic: Callable[[], float]) -> None:
        self._conf, self._environ, self._job_id = values, environ, job_id
        self._clocks = Clocks(monotonic, lambda: datetime.now(UTC))
        self._events = Events()
        self._base: Base | None = None
        self._children: dict[Group, TriggerChild] = {}
        self._losses: dict[int, int] = {}
        self._parts = itertools.count(1)
        self._used_at = monotonic()
        self._results: list[Result] = []
        self._next_claim = self._next_renewal = self._renewed_at = self._database_retry = 0.0
        store = stores.of_writers(values, is_worker=False)
        self._keeper = Keeper(values, store, TRIGGER, self._clocks.wall, monotonic)
        self._keeper.start()
        self._bell = StopBell(
            self._events, {db.TRIGGER_CHANNEL: self._stored, db.TRIGGER_STOP_CHANNEL: self._taken_away}
        )

    @property
    def held(self) -> set[int]:
        """Ids of the triggers that run here."""
        return {key for child in self._children.values() for key in child.triggers}

    def describe(self) -> list[str]:
        """What it is doing, for an operator who asks with SIGUSR2."""
        return [
            f"triggerer: {len(self.held)} triggers in {len(self._children)} processes",
            f"triggerer: {len(self._results)} results wait to be stored",
            *(
                f"bundle {bundle} {version or 'as it is'}, part {part}: {len(child.triggers)} triggers"
                for (bundle, version, part), child in self._children.items()
            ),
        ]

    def step(self, longest_seconds: float, clock: Callable[[], datetime]) -> list[int]:
        """Serves the children, stores what fired, claims and renews; the task instances that go on."""
        self._events.poll(self._wait_seconds(longest_seconds))
        for child in self._children.values():
            self._results += child.take_results()
        moved: list[int] = []
        monotonic = self._clocks.monotonic()
        if monotonic < self._database_retry:
            return moved
        try:
            self._bell.arm()
            if self._results:
                moved = self._store(clock())
            if monotonic >= self._next_renewal:
                self._renewed_at, self._next_renewal = monotonic, monotonic + self._conf.lease_seconds / 3
                self._renew(clock())
            if monotonic >= self._next_claim:
                self._next_claim = monotonic + self._conf.idle_poll_seconds
                self._claim(clock())
        except (db.DatabaseError, db.InterfaceError) as error:
            if not db.is_transient(error):
                raise
            log.warning("The database refused, trying again: %s", str(error).strip())
            db.close()
            self._database_retry = monotonic + _DATABASE_RETRY_SECONDS
        return moved

    def _stored(self) -> None:
        """A trigger was stored: it need not wait for the next look."""
        self._next_claim = 0.0

    def _taken_away(self) -> None:
        """A task waits for its trigger no longer (marked, cleared, timed out): look at once whether it is ours."""
        self._next_renewal = min(self._next_renewal, self._renewed_at + _EARLY_RENEWAL_SECONDS)

    def release(self) -> None:
        """Gives every trigger back, so that another triggerer takes it at once."""
        with contextlib.suppress(db.DatabaseError, db.InterfaceError):
            rows.release(self._job_id)

    def close(self) -> None:
        """Ends the children; returns when they are gone."""
        for child in self._children.values():
            child.triggers.clear()
        if self._base is not None:
            self._base.stop()
            self._base = None
        self._children.clear()
        self._events.close()
        self._keeper.stop(_LOGS_SECONDS)

    def _wait_seconds(self, longest: float) -> float:
        if self._results and self._clocks.monotonic() >= self._database_retry:
            return 0.0
        return max(0.0, min(longest, min(self._next_claim, self._next_renewal) - self._clocks.monotonic()))

    def _store(self, now: datetime) -> list[int]:
        """All results at once; when a row makes that fail, one by one, and the culprit is told instead (I5)."""
        results, self._results = self._results, []
        try:
            moved = rows.resume(results, now)
        except (db.DatabaseError, ValueError, TypeError) as error:
            if db.is_transient(error):
                self._results = results
                raise
            moved = [key for result in results for key in self._store_one(result, now)]
        for result in results:
            self._losses.pop(result.trigger_id, None)
            kind = "failed" if result.error is not None else "fired" if result.end is None else "ended"
            metrics.TRIGGERS_ENDED.labels(kind).inc()
        return moved

    def _store_one(self, result: Result, now: datetime) -> list[int]:
        try:
            return rows.resume([result], now)
        except (db.DatabaseError, ValueError, TypeError) as error:
            if db.is_transient(error):
                raise
            log.exception("The event of trigger %s cannot be stored", result.trigger_id)
            told = {"type": type(error).__name__, "message": "The trigger's event cannot be stored."}
            return rows.resume([Result(result.trigger_id, error=told)], now)

    def _renew(self, now: datetime) -> None:
        bury_neighbours(now, "TriggererJob")
        rows.drop_unwanted()
        held = self.held
        lost = held - rows.renew(self._job_id, held, now, self._conf.lease_seconds)
        for child in self._children.values():
            for key in lost & child.triggers.keys():
                child.cancel(key)
        for group, child in list(self._children.items()):
            if not child.triggers and not child.results:
                child.stop()
                del self._children[group]
        self._rest()

    def _rest(self) -> None:
        """A base without children for a while gives its memory back."""
        monotonic = self._clocks.monotonic()
        if self._children:
            self._used_at = monotonic
        elif self._base is not None and monotonic - self._used_at > _BASE_IDLE_SECONDS:
            self._base.stop()
            self._base = None

    def _claim(self, now: datetime) -> None:
        room = self._conf.triggerer_capacity - len(self.held)
        for waiting in self._described(rows.claim(self._job_id, now, self._conf.lease_seconds, room)):
            self._child_of(waiting).start(waiting)
        metrics.TRIGGERS_RUNNING.set(len(self.held))

    def _described(self, ids: list[int]) -> list[Waiting]:
        """The claimed triggers that can be run; one that cannot even be described fails, and it alone (BC-85)."""
        try:
            return rows.describe(ids)
        except Exception as error:
            if db.is_transient(error):
                raise
            if len(ids) > 1:
                return [waiting for key in ids for waiting in self._described([key])]
            log.exception("Trigger %s cannot be run", ids[0])
            told = {"type": type(error).__name__, "message": f"The trigger cannot be run: {error}"}
            self._results.append(Result(ids[0], error=told))
            return []

    def _child_of(self, waiting: Waiting, part: int = 0) -> TriggerChild:
        group = (waiting.bundle_name, waiting.bundle_version, part)
        child = self._children.get(group)
        if child is None or not child.alive:
            child = self._children[group] = TriggerChild(
                self._running_base(),
                self._events,
                self._clocks,
                self._conf.log_folder,
                self._conf.max_message_mb * _MEGABYTE,
                self._ended,
                self._keeper,
            )
        return child

    def _running_base(self) -> Base:
        if self._base is None or not self._base.alive:
            if self._base is not None:
                self._base.reap()
            self._base = Base(self._events, self._environ, "")
        return self._base

    def _ended(self, child: TriggerChild, exit: Exit) -> None:
        """A child died: its triggers go on in two others, so that a killer among them soon stands alone (I5)."""
        self._results += child.take_results()
        orphans = list(child.triggers.values())
        child.triggers.clear()
        self._children = {group: other for group, other in self._children.items() if other is not child}
        if orphans:
            log.warning("A process of %d triggers ended: %s", len(orphans), exit.text)
        if len(orphans) == 1 and self._is_killer(orphans[0]):
            told = {
                "type": "ProcessLost",
                "message": f"It ended its process {_LOST_ALONE} times, last because {exit.text}.",
            }
            self._results.append(Result(orphans[0].trigger_id, error=told))
            return
        middle = (len(orphans) + 1) // 2
        for half in (orphans[:middle], orphans[middle:]):
            part = next(self._parts)
            for waiting in half:
                self._child_of(waiting, part).start(waiting)

    def _is_killer(self, waiting: Waiting) -> bool:
        """Whether a trigger that was alone in its process has lost too many."""
        self._losses[waiting.trigger_id] = self._losses.get(waiting.trigger_id, 0) + 1
        return self._losses[waiting.trigger_id] >= _LOST_ALONE


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, frame: stop.set())
    return stop
