"""The scheduler's loop is this table of phases, top to bottom; each is one file with one public ``run(tick) -> int``.

Timing, metrics, error isolation and the transaction come from here, not from the phase. A phase that raises is rolled
back and tried again with half as many rows until the culprit stands alone; then the culprit keeps its error and backs
off (I5). Nothing that a phase raises ends the process.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler_app import metrics
from scheduler_app.models import db
from scheduler_app.models.prepared import FEW

from .phases import (
    adopt_orphans,
    create_asset_runs,
    create_runs,
    enforce_timeouts,
    fail_lost_tasks,
    miss_deadlines,
    pause_failing,
    publish,
    queue_tasks,
    run_backfills,
    sample_metrics,
    schedule_tasks,
    start_runs,
    sweep,
    sync_executors,
)
from .tick import Tick

log = logging.getLogger("scheduler_app.scheduler")


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    run: Callable[[Tick], int]
    #: seconds between two runs; 0 = every tick in which the probe says that there may be work
    every_seconds: Callable[[Tick], float] | float = 0.0
    #: False for a phase that opens (and closes) its own transactions
    atomic: bool = True
    #: name of the probe's column that says "there may be work"; None = whenever its time has come
    probe: str | None = None
    #: True: a second step of the phase above it, in whose transaction it may run where that has changed a few rows
    joins: bool = False
    #: stores the error of a row that fails alone
    blame: Callable[[Tick, object, BaseException], None] | None = None


PHASES: tuple[Phase, ...] = (
    Phase("sync_executors", sync_executors.run, atomic=False),
    Phase("pause_failing", pause_failing.run, probe="dag_wakes"),
    Phase("create_runs", create_runs.run, probe="due_dags", blame=create_runs.blame),
    Phase("create_asset_runs", create_asset_runs.run, probe="asset_events", blame=create_asset_runs.blame),
    Phase("enforce_timeouts", enforce_timeouts.run, probe="alarms", blame=enforce_timeouts.blame),
    Phase("start_runs", start_runs.run, probe="queued_runs"),
    Phase("run_backfills", run_backfills.run, probe="backfills", blame=run_backfills.blame),
    Phase("schedule_tasks", schedule_tasks.run, probe="wakes", blame=schedule_tasks.blame),
    Phase("queue_tasks", queue_tasks.run, probe="scheduled_tasks", joins=True),
    Phase("publish", publish.run, probe="outbox", atomic=False),
    Phase("miss_deadlines", miss_deadlines.run, probe="deadlines"),
    Phase("fail_lost_tasks", fail_lost_tasks.run, every_seconds=lambda t: t.conf.task_heartbeat_timeout_seconds / 6),
    Phase("adopt_orphans", adopt_orphans.run, every_seconds=lambda t: t.conf.lease_seconds / 3),
    Phase("sweep", sweep.run, every_seconds=lambda t: t.conf.sweep_seconds),
    Phase("sample_metrics", sample_metrics.run, every_seconds=5.0),
)

#: The phases that count others as dead when they are silent.
JUDGES = ("fail_lost_tasks", "adopt_orphans")

#: "Is there anything?" in one statement: an idle tick is this and nothing else. A partial index gives each answer: the
#: order asks for it, while a plain EXISTS was read from the table's beginning where many rows fit (2,792 pages for 30).
PROBE = """
WITH clock AS MATERIALIZED (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now)
SELECT (SELECT now FROM clock),
       (SELECT id FROM scheduler_wake ORDER BY id LIMIT 1) IS NOT NULL AS wakes,
       (SELECT id FROM scheduler_dag_wake ORDER BY id LIMIT 1) IS NOT NULL AS dag_wakes,
       (SELECT id FROM scheduler_dag_run WHERE state = 'queued' AND backfill_id IS NULL
        ORDER BY dag_id, run_after, id LIMIT 1) IS NOT NULL AS queued_runs,
       (SELECT id FROM scheduler_backfill WHERE completed_at IS NULL AND NOT slots_pending
        ORDER BY id LIMIT 1) IS NOT NULL AS backfills,
       (SELECT id FROM scheduler_task_instance WHERE state = 'scheduled'
        ORDER BY priority_weight DESC, scheduled_when, id LIMIT 1) IS NOT NULL AS scheduled_tasks,
       (SELECT id FROM scheduler_task_instance WHERE state = 'queued' AND handed_out_at IS NULL
        ORDER BY priority_weight DESC, queued_when, id LIMIT 1) IS NOT NULL AS outbox,
       (SELECT id FROM scheduler_asset_queued_event ORDER BY id LIMIT 1) IS NOT NULL AS asset_events,
       (SELECT dag_id FROM scheduler_dag
        WHERE NOT is_paused AND NOT is_stale AND next_dagrun_run_after <= (SELECT now FROM clock)
        ORDER BY next_dagrun_run_after, dag_id LIMIT 1) IS NOT NULL AS due_dags,
       (SELECT id FROM scheduler_dag_run
        WHERE state IN ('queued', 'running') AND next_check_at <= (SELECT now FROM clock)
        ORDER BY next_check_at LIMIT 1) IS NOT NULL
           OR (SELECT id FROM scheduler_task_instance
               WHERE state = 'deferred' AND trigger_timeout <= (SELECT now FROM clock)
               ORDER BY trigger_timeout LIMIT 1) IS NOT NULL
           AS alarms,
       (SELECT id FROM scheduler_deadline WHERE missed_at IS NULL AND due_at <= (SELECT now FROM clock)
        ORDER BY due_at, id LIMIT 1) IS NOT NULL AS deadlines
"""
PROBE_COLUMNS = (
    "wakes",
    "dag_wakes",
    "queued_runs",
    "backfills",
    "scheduled_tasks",
    "outbox",
    "asset_events",
    "due_dags",
    "alarms",
    "deadlines",
)

#: What a phase's work may give other phases to do, in the same tick.
FEEDS: dict[str, tuple[str, ...]] = {
    "create_runs": ("queued_runs",),
    "create_asset_runs": ("queued_runs",),
    "start_runs": ("wakes",),
    "run_backfills": ("wakes",),
    "enforce_timeouts": ("wakes",),
    "schedule_tasks": ("scheduled_tasks",),
    "queue_tasks": ("outbox",),
    "sync_executors": ("wakes", "scheduled_tasks"),
    "fail_lost_tasks": ("wakes",),
    "adopt_orphans": ("scheduled_tasks",),
    "sweep": ("wakes",),
}


Step = tuple[Phase, ...]


def steps(phases: Sequence[Phase]) -> list[Step]:
    """Each phase with those below that join it."""
    found: list[Step] = []
    for phase in phases:
        if phase.joins:
            found[-1] += (phase,)
        else:
            found.append((phase,))
    return found


def probe(now: datetime | None = None) -> tuple[datetime, dict[str, bool]]:
    """What the database's clock says, or the time that is given, and what there is to do then. One statement (I7)."""
    now, *found = db.fetch(PROBE, {"now": now}, keep_plan=True)[0]
    return now, dict(zip(PROBE_COLUMNS, found, strict=True))


class Loop:
    """Runs the table. ``tick`` makes one pass; the caller sleeps when it returns 0."""

    def __init__(self, phases: tuple[Phase, ...] = PHASES, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.phases, self.steps = phases, steps(phases)
        self.monotonic = monotonic
        self.last_run: dict[str, float] = {}
        #: the phase that runs now, for whoever asks what the process does
        self.phase = ""

    def tick(self, tick: Tick, flags: dict[str, bool] | None = None) -> int:
        """One pass over the phases that may have work; how many rows they changed. ``flags``: of :func:`probe`."""
        started = self.monotonic()
        if flags is None:
            _, flags = probe(tick.now)
        done = 0
        for step in self.steps:
            together = len(step) > 1 and self._is_due(step[0], tick, flags)
            changed, rest = self.run_together(step, tick, flags) if together else (0, step)
            done += changed
            for phase in rest:
                if self._is_due(phase, tick, flags):
                    changed = self.run_phase(phase, tick)
                    self._note(phase, changed, flags)
                    done += changed
        metrics.LOOP_SECONDS.observe(self.monotonic() - started)
        return done

    def put_off(self, names: Iterable[str]) -> None:
        """These phases have to wait for their whole period again."""
        self.last_run.update(dict.fromkeys(names, self.monotonic()))

    def run_together(self, step: Step, tick: Tick, flags: dict[str, bool]) -> tuple[int, Step]:
        """Phases of one step in one transaction: how many rows they changed, and which of them are still to run.

        One that raises takes back what the others did: then each is run by itself, with its own error boundary.
        """
        done, seen = 0, dict(flags)
        rest = step
        tick.shares = True
        try:
            with db.atomic():
                while rest and (done <= FEW or tick.ready):
                    phase, rest = rest[0], rest[1:]
                    if self._is_due(phase, tick, seen):
                        changed = self._run(phase, tick, contextlib.nullcontext())
                        self._note(phase, changed, seen)
                        done += changed
        except Exception as error:
            self._part(phase, error)
            tick.forget()
            return 0, step
        finally:
            tick.shares = False
        flags.update(seen)
        return done, rest

    def _part(self, phase: Phase, error: Exception) -> None:
        metrics.PHASE_ERRORS.labels(phase.name).inc()
        log.warning("%s failed in a shared transaction (%s): each phase by itself now", phase.name, error)

    def _note(self, phase: Phase, changed: int, flags: dict[str, bool]) -> None:
        self.last_run[phase.name] = self.monotonic()
        if changed:
            flags.update(dict.fromkeys(FEEDS.get(phase.name, ()), True))

    def _is_due(self, phase: Phase, tick: Tick, flags: dict[str, bool]) -> bool:
        if phase.probe is not None:
            return flags[phase.probe]
        every = phase.every_seconds(tick) if callable(phase.every_seconds) else phase.every_seconds
        last = self.last_run.get(phase.name)
        return last is None or self.monotonic() - last >= every

    def run_phase(self, phase: Phase, tick: Tick) -> int:
        """One phase with its transaction and its error boundary; how many rows it changed."""
        limit = tick.limit
        try:
            while True:
                try:
                    return self._run(phase, tick, _transaction(phase))
                except Exception as error:
                    metrics.PHASE_ERRORS.labels(phase.name).inc()
                    if not self._halve(phase, tick, error):
                        return 0
        finally:
            tick.limit = limit

    def _run(self, phase: Phase, tick: Tick, transaction: contextlib.AbstractContextManager[None]) -> int:
        """The phase itself in its transaction (or in the one that is open): timed, and named for whoever asks."""
        tick.working_on = []
        self.phase = phase.name
        try:
            with metrics.PHASE_SECONDS.labels(phase.name).time(), transaction:
                return phase.run(tick)
        finally:
            self.phase = ""

    def _halve(self, phase: Phase, tick: Tick, error: Exception) -> bool:
        """Whether to try the phase again, with fewer rows; a culprit that stands alone gets its error."""
        if db.is_transient(error):
            log.warning("%s: the database refused (%s); it will be tried again", phase.name, error)
            db.close()
            return False
        taken = len(tick.working_on)
        tick.forget()
        if phase.blame is None or not taken:
            log.error("%s failed", phase.name, exc_info=error)
            return False
        if taken > 1:
            tick.limit = max(1, min(tick.limit, taken) // 2)
            return True
        log.error("%s failed for %s alone", phase.name, tick.working_on[0], exc_info=error)
        with contextlib.suppress(db.DatabaseError), db.atomic():
            phase.blame(tick, tick.working_on[0], error)
        tick.again = True  # the others have not had their turn
        return False


@contextlib.contextmanager
def _transaction(phase: Phase) -> Iterator[None]:
    if not phase.atomic:
        yield
        return
    with db.atomic():
        yield
