"""Every metric of ours, declared once (F-26). Names follow Airflow's where it has one; times are in seconds.

What is counted inside a transaction is added when it has committed, and forgotten when it is rolled back (S-54):
``models.db.atomic`` holds it back until then.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any

import prometheus_client
from prometheus_client import Gauge

_held_back: ContextVar[list[Callable[[], None]] | None] = ContextVar("held_back", default=None)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """What is counted inside counts when the block ends well; inside another such block, when that one does."""
    outer = _held_back.get()
    mine: list[Callable[[], None]] = []
    token = _held_back.set(mine)
    try:
        yield
    finally:
        _held_back.reset(token)
    if outer is not None:
        outer += mine
        return
    for add in mine:
        add()


def _add(what: Callable[..., None], *values: Any) -> None:
    waiting = _held_back.get()
    if waiting is None:
        what(*values)
    else:
        waiting.append(partial(what, *values))


class Counter(prometheus_client.Counter):
    def inc(self, amount: float = 1, exemplar: dict[str, str] | None = None) -> None:
        _add(super().inc, amount, exemplar)


class Histogram(prometheus_client.Histogram):
    def observe(self, amount: float, exemplar: dict[str, str] | None = None) -> None:
        _add(super().observe, amount, exemplar)


_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_SLOW = (0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600)

LOOP_SECONDS = Histogram("scheduler_loop_duration_seconds", "One pass of the scheduler's loop.", buckets=_FAST)
PHASE_SECONDS = Histogram("scheduler_phase_duration_seconds", "One phase of the loop.", ["phase"], buckets=_FAST)
PHASE_ERRORS = Counter("scheduler_phase_errors_total", "Phases that raised and were rolled back.", ["phase"])
HEARTBEATS = Counter("scheduler_heartbeat_total", "Heartbeats written.", ["job_type"])
CRITICAL_SECTION_BUSY = Counter(
    "scheduler_critical_section_busy_total", "Admissions that another scheduler was making at that moment."
)
RUNS_CREATED = Counter("scheduler_dag_runs_created_total", "Runs created by a schedule.")
SCHEDULE_DELAY = Histogram(
    "dagrun_schedule_delay_seconds", "From the end of its wait to the first start of a scheduled run.", buckets=_SLOW
)
RUNS_ENDED = Counter("dagrun_ended_total", "Runs that ended.", ["state"])
DEADLINES_MISSED = Counter("scheduler_deadlines_missed_total", "Deadlines of runs and SLAs of tasks missed.", ["kind"])
TASKS_SCHEDULED = Counter("scheduler_tasks_scheduled_total", "Task instances found ready.")
TASKS_QUEUED = Counter("scheduler_tasks_queued_total", "Task instances that were given a slot.")
TASKS_REFUSED = Gauge(
    "scheduler_tasks_refused",
    "Ready task instances refused in the last admission.",
    ["reason"],
    multiprocess_mode="mostrecent",
)
HAND_OUTS_LOST = Counter("scheduler_hand_outs_lost_total", "Hand-outs that were lost before they began.")
TASKS_LOST = Counter("scheduler_tasks_lost_total", "Attempts whose process or heartbeat was lost.")
ORPHANS_ADOPTED = Counter("scheduler_orphaned_tasks_adopted_total", "Hand-outs taken over from dead schedulers.")
SWEPT = Counter("scheduler_swept_total", "Runs that only the safety sweep found: 0 in a healthy system.")
TASK_STATES = Gauge(
    "scheduler_task_instances",
    "Pool slots by open state of their task instances.",
    ["state"],
    multiprocess_mode="mostrecent",
)
POOL_SLOTS = Gauge(
    "pool_slots", "Slots of a pool by what they are doing.", ["pool", "slots"], multiprocess_mode="mostrecent"
)
LIMIT_UNITS = Gauge(
    "scheduler_limit_units",
    "Keyed limits: how much there is (amount), and how much is taken or was within the window of a rate (used).",
    ["limit", "what"],
    multiprocess_mode="mostrecent",
)
OLDEST_SNAPSHOT = Gauge(
    "scheduler_oldest_snapshot_seconds", "Age of the oldest snapshot in the database.", multiprocess_mode="mostrecent"
)
PARSE_SECONDS = Histogram("dag_processing_parse_duration_seconds", "Parse of one DAG file.", buckets=_FAST)
FILES_PARSED = Counter("dag_processing_files_parsed_total", "DAG files that were parsed.", ["result"])
CALLBACKS_ENDED = Counter("dag_processing_callbacks_total", "Attempts to run a callback.", ["result"])
MAILS_ENDED = Counter("scheduler_mails_total", "Attempts to send a mail.", ["result"])
TRIGGERS_RUNNING = Gauge("triggers_running", "Triggers that a triggerer holds.", multiprocess_mode="livesum")
TRIGGERS_ENDED = Counter("triggers_ended_total", "Triggers that fired, failed, or ended their task.", ["result"])


_refused_before: set[str] = set()


def show_refused(counts: Mapping[str, int]) -> None:
    """How many were refused by each reason; one that was seen before and is not there now goes to 0.

    (The library cannot clear a gauge's labels where several processes share it.)
    """
    _refused_before.update(counts)
    for reason in _refused_before:
        TASKS_REFUSED.labels(reason).set(counts.get(reason, 0))
