"""Admission (the seed's critical section): which scheduled task instances get a slot now (I2, I4; F-04 … F-09).

The try-lock is a statement of its own *before* anything is counted, so that two schedulers never count the same room.
A first page in the global order is read from the task instances alone; when it is clogged by refused rows while room is
left, ``scheduler.admission_pages`` finds those behind it, run by run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler_app import metrics
from scheduler_app.engine.admission import Refusal, Room
from scheduler_app.engine.limits import decode
from scheduler_app.models import Limit, db, locks, transitions
from scheduler_app.scheduler.admission_pages import Pages
from scheduler_app.scheduler.lost import Hopeless, fail_for_good
from scheduler_app.scheduler.tick import Tick

_ACTIVE = """
SELECT dag_id, dag_run_id, task_id, pool, state, count(*), sum(pool_slots) FROM scheduler_task_instance
WHERE state IN ('queued', 'running', 'restarting', 'deferred') GROUP BY 1, 2, 3, 4, 5
"""
#: Hand-outs of ours that their executor has still to take.
_OUTBOX = """
SELECT executor, count(*) FROM scheduler_task_instance
WHERE state = 'queued' AND handed_out_at IS NULL AND queued_by_job_id = %(job)s GROUP BY executor
"""
#: Pools and keyed limits, which have a window (0 = at once), in one statement.
_CAPACITIES = """
SELECT pool, slots, include_deferred, NULL::float FROM scheduler_pool
UNION ALL SELECT name, amount, NULL, coalesce(per_seconds, 0) FROM scheduler_limit
"""


def run(tick: Tick) -> int:
    slots = {name: executor.slots_available() for name, executor in tick.executors.items()}
    for name, waiting in db.fetch(_OUTBOX, {"job": tick.job_id}):
        slots[tick.executor(name).name] -= waiting
    if not any(free > 0 for free in slots.values()):
        return 0
    if not locks.try_admission():
        metrics.CRITICAL_SECTION_BUSY.inc()
        tick.again = True
        return 0
    room, keeping_pools = _room(tick, _in_use(), slots)
    pages = Pages(room, tick, keeping_pools)
    pages.admit_resumed()
    if pages.admit_first():
        pages.admit_behind()
    metrics.show_refused(Counter(refusal.code for refusal in pages.refused.values()))
    failed = _fail_hopeless(pages.refused, tick)
    queued = transitions.tasks("queue", sorted(pages.admitted), tick.now, queued_by_job_id=tick.job_id)
    _take_rates(pages, queued, tick)
    tick.due_at = pages.due_at
    metrics.TASKS_QUEUED.inc(len(queued))
    return len(queued) + failed


class _Use(NamedTuple):
    """Active task instances, counted once for every limit."""

    runs: dict[int, int]
    dags: dict[str, int]
    tasks: dict[tuple[str, str], int]
    run_tasks: dict[tuple[int, str], int]
    #: pool → slots by state
    pools: dict[str, dict[str, int]]


def _in_use() -> _Use:
    use = _Use(defaultdict(int), defaultdict(int), defaultdict(int), defaultdict(int), defaultdict(dict))
    for dag_id, run_id, task_id, pool, state, count, slots in db.fetch(_ACTIVE):
        use.runs[run_id] += count
        use.dags[dag_id] += count
        use.tasks[dag_id, task_id] += count
        use.run_tasks[run_id, task_id] += count
        of_pool = use.pools[pool]
        of_pool[state] = of_pool.get(state, 0) + int(slots)
    return use


def _room(tick: Tick, use: _Use, slots: dict[str, int]) -> tuple[Room, list[str]]:
    """What is left of every limit, and the pools that keep a slot for the time of a deferral."""
    keeping: list[str] = []
    totals: dict[str, int] = {}
    used: dict[str, int] = {}
    limits: list[tuple[str, int, float | None]] = []
    for pool, total, include_deferred, window in db.fetch(_CAPACITIES):
        if window is not None:
            limits.append((pool, total, window or None))
            continue
        totals[pool] = total
        if include_deferred:
            keeping.append(pool)
        used[pool] = sum(n for state, n in use.pools[pool].items() if include_deferred or state != "deferred")
    default = next(iter(tick.executors))
    executors: dict[str | None, int] = {name: max(0, free) for name, free in slots.items()}
    executors[None] = executors.pop(default)
    room = Room(
        pool_slots=totals,
        pool_used=used,
        executors=executors,
        runs=use.runs,
        dags=use.dags,
        tasks=use.tasks,
        run_tasks=use.run_tasks,
        limits=Limit.objects.allowances(tick.now, limits),
        max_active_tasks_per=tick.conf.max_active_tasks_per,
    )
    return room, keeping


def _take_rates(pages: Pages, queued: Sequence[int], tick: Tick) -> None:
    """Only what is handed out for good counts: rows that somebody else moved meanwhile took nothing."""
    units: Counter[str] = Counter()
    for key in queued:
        for name, count in decode(pages.taken.get(key, "")):
            if pages.room.limits[name].per_seconds is not None:
                units[name] += count
    Limit.objects.take(units, tick.now)


def _fail_hopeless(refused: Mapping[int, Refusal], tick: Tick) -> int:
    """What can never run (a task wider than its pool) ends with the reason instead of waiting for ever (S-05)."""
    never = sorted((key, refusal.text) for key, refusal in refused.items() if refusal.never)
    return fail_for_good([Hopeless(key, text) for key, text in never], tick.now)
