"""Admission (the seed's critical section): which scheduled task instances get a slot now (I2, I4; F-04 … F-09).

The try-lock is a statement of its own *before* anything is counted, so that two schedulers never count the same room
(both travel in one trip).
A first page in the global order is read from the task instances alone; when it is clogged by refused rows while room is
left, ``scheduler.admission_pages`` finds those behind it, run by run. It waits for no row: the looks of the same
transaction may hold rows already, and a row that somebody holds gets its slot at the next pass.

What that look found ready and left to us (``tick.ready``) is judged as if it had been written, and goes from there to
queued in one move; what gets no slot is written as scheduled here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scheduler_app import metrics
from scheduler_app.engine import states
from scheduler_app.engine.admission import Refusal, Room
from scheduler_app.engine.limits import decode
from scheduler_app.executors.base import HandOut
from scheduler_app.models import Limit, db, locks, transitions
from scheduler_app.models.prepared import is_few
from scheduler_app.scheduler.admission_pages import Pages
from scheduler_app.scheduler.lost import Hopeless, fail_for_good
from scheduler_app.scheduler.tick import Queued, Tick

#: Every pool (one may be gone) and keyed limit, and the active task instances, counted once for every limit. Hand-outs
#: of ours that are not stamped come by name: of some their executor has still to be told. There is a row without any
#: name too, so that no rows at all mean that another scheduler admits.
_IN_USE = f"""
SELECT c.*, a.* FROM (
    SELECT NULL AS name, NULL::float AS per_seconds, NULL AS pool, NULL::int AS slots, NULL::bool AS include_deferred
    WHERE {locks.ADMITS}
    UNION ALL SELECT NULL, NULL, pool, slots, include_deferred FROM scheduler_pool WHERE {locks.ADMITS}
    UNION ALL SELECT name, per_seconds, NULL, amount, NULL FROM scheduler_limit WHERE {locks.ADMITS}
) c FULL JOIN (
    SELECT pool, state, dag_id, dag_run_id, task_id, count(*), sum(pool_slots),
           array_agg(executor) FILTER (WHERE mine), array_agg(id) FILTER (WHERE mine),
           array_agg(fence) FILTER (WHERE mine)
    FROM (
        SELECT *, state = 'queued' AND handed_out_at IS NULL AND queued_by_job_id = %(job)s AS mine
        FROM scheduler_task_instance WHERE state IN ('queued', 'running', 'restarting', 'deferred') AND {locks.ADMITS}
    ) ti GROUP BY 1, 2, 3, 4, 5
) a ON a.pool = c.pool
"""
#: What an executor is told of what moved, once that is committed.
_HAND_OUTS = " SELECT id AS ti_id, fence, dag_id, queue, priority_weight AS priority, executor FROM moved"


def run(tick: Tick) -> int:
    slots = {name: executor.slots_available() for name, executor in tick.executors.items()}
    if not any(free > 0 for free in slots.values()):
        return _schedule_rest(tick)
    use = _in_use(tick)
    if use is None:
        metrics.CRITICAL_SECTION_BUSY.inc()
        tick.again = True
        return _schedule_rest(tick)
    return _admit(tick, slots, use)


def _admit(tick: Tick, slots: dict[str, int], use: _Use) -> int:
    for name, *hand_out in use.untold:
        executor = tick.executor(name)
        slots[executor.name] -= not executor.knows(HandOut(*hand_out))  # it counts itself what it knows
    pages = Pages(_room(tick, use, slots), tick, use.keeping)
    pages.admit_resumed()
    if pages.admit_first():
        _schedule_rest(tick)
        pages.admit_behind()
    metrics.show_refused(Counter(refusal.code for refusal in pages.refused.values()))
    queued = _queue(pages.admitted, tick)
    _schedule_rest(tick)
    failed = _fail_hopeless(pages.refused, tick)
    if len(queued) < len(pages.admitted):
        tick.again = True  # somebody holds the others
    _take_rates(pages, queued, tick)
    tick.due_at = pages.due_at
    metrics.TASKS_QUEUED.inc(len(queued))
    return len(queued) + failed


def _queue(admitted: Sequence[int], tick: Tick) -> list[int]:
    """The ids of those that got their slot; what was not written before goes through two states in one move.

    A few are told to ``publish`` as they are; many it reads from the outbox.
    """
    both = set(admitted).intersection(tick.ready)
    moved: list[int] = []
    for verb, ids in (("schedule_and_queue", sorted(both)), ("queue", sorted(set(admitted) - both))):
        if is_few(admitted):
            found = transitions.tasks_then(_HAND_OUTS, verb, ids, tick.now, wait=False, queued_by_job_id=tick.job_id)
            tick.queued += [Queued(row.pop("executor"), HandOut(**row)) for row in found]
            moved += [row["ti_id"] for row in found]
        else:
            moved += transitions.tasks(verb, ids, tick.now, wait=False, queued_by_job_id=tick.job_id)
    done = both.intersection(moved)
    metrics.TASKS_SCHEDULED.inc(len(done))
    tick.ready = [key for key in tick.ready if key not in done]
    return moved


def _schedule_rest(tick: Tick) -> int:
    """Writes down as scheduled what the look left to us and what did not go further, as the look would have done."""
    moved = transitions.tasks("schedule", tick.ready, tick.now, wake=False)
    tick.ready = []
    metrics.TASKS_SCHEDULED.inc(len(moved))
    return 0


class _Use(NamedTuple):
    """Pools, and active task instances, counted once for every limit."""

    runs: dict[int, int]
    dags: dict[str, int]
    tasks: dict[tuple[str, str], int]
    run_tasks: dict[tuple[int, str], int]
    #: pool → slots that are taken
    pools: dict[str, int]
    #: pool → its slots
    totals: dict[str, int]
    #: pools that keep a slot for the time of a deferral
    keeping: list[str]
    #: name, amount, seconds (None: at once) of keyed limits
    limits: list[tuple[str, int, float | None]]
    #: (executor, id, fence) of hand-outs that its executor may have still to be told of
    untold: list[tuple[str | None, int, int]]


def _in_use(tick: Tick) -> _Use | None:
    """None: another scheduler admits now."""
    rows = db.fetch(_IN_USE, {"job": tick.job_id}, keep_plan=True, first=locks.ADMISSION)
    if not rows:
        return None
    use = _Use(defaultdict(int), defaultdict(int), defaultdict(int), defaultdict(int), {}, {}, [], [], [])
    for limit, per_seconds, name, total, include_deferred, *active in rows:
        if limit is not None:
            use.limits.append((limit, total, per_seconds))
        elif name is not None and name not in use.totals:
            use.totals[name] = total
            if include_deferred:
                use.keeping.append(name)
        pool, state, dag_id, run_id, task_id, count, slots, *mine = active
        if pool is None:
            continue  # nobody uses it
        use.runs[run_id] += count
        use.dags[dag_id] += count
        use.tasks[dag_id, task_id] += count
        use.run_tasks[run_id, task_id] += count
        if include_deferred or state != states.DEFERRED:
            use.pools[pool] = use.pools.get(pool, 0) + int(slots)
        if mine[0] is not None:
            use.untold.extend(zip(*mine, strict=True))
    return use


def _room(tick: Tick, use: _Use, slots: dict[str, int]) -> Room:
    """What is left of every limit."""
    default = next(iter(tick.executors))
    executors: dict[str | None, int] = {name: max(0, free) for name, free in slots.items()}
    executors[None] = executors.pop(default)
    return Room(
        pool_slots=use.totals,
        pool_used=use.pools,
        executors=executors,
        runs=use.runs,
        dags=use.dags,
        tasks=use.tasks,
        run_tasks=use.run_tasks,
        limits=Limit.objects.allowances(tick.now, use.limits),
        max_active_tasks_per=tick.conf.max_active_tasks_per,
    )


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
    return fail_for_good([Hopeless(key, text) for key, text in never], tick.now, wait=False)
