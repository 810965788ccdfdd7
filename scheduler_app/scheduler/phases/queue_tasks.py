"""Admission (the seed's critical section): which scheduled task instances get a slot now (I2, I4; F-04 … F-09).

The try-lock is a statement of its own *before* anything is counted, so that two schedulers never count the same room.
A first page in the global order is read from the task instances alone; when it is clogged by refused rows while room is
left, a loose index scan over the (pool, DAG) keys that may still have room finds those behind it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app import metrics
from scheduler_app.engine.admission import Candidate, Refusal, Room, admit
from scheduler_app.models import db, locks, transitions
from scheduler_app.scheduler.tick import Tick

#: Rows that one (pool, DAG) key may bring when the first page was clogged.
ROWS_PER_KEY = 64
#: (pool, DAG) keys that one look behind a clogged page takes in.
KEYS = 512


class Ready(NamedTuple):
    """A scheduled row, in the order of ``_COLUMNS``."""

    id: int
    dag_id: str
    run_id: int
    task_id: str
    pool: str
    pool_slots: int
    executor: str | None
    max_active_tis_per_dag: int | None
    max_active_tis_per_dagrun: int | None
    priority_weight: int
    scheduled_when: datetime
    held_at: datetime | None
    held_until: datetime | None

    def held(self, now: datetime) -> bool:
        return self.held_at is not None and (self.held_until is None or self.held_until > now)


_COLUMNS = (
    "id, dag_id, dag_run_id, task_id, pool, pool_slots, executor, max_active_tis_per_dag, max_active_tis_per_dagrun,"
    " priority_weight, scheduled_when, held_at, held_until"
)
_ORDER = "priority_weight DESC, scheduled_when, id"
_FIRST_PAGE = (
    f"SELECT {_COLUMNS} FROM scheduler_task_instance WHERE state = 'scheduled' ORDER BY {_ORDER} LIMIT %(limit)s"
)
#: The keys that have scheduled rows, each found by one step in the index.
_KEYS = """
WITH RECURSIVE keys AS (
    (SELECT pool, dag_id FROM scheduler_task_instance WHERE state = 'scheduled' ORDER BY pool, dag_id LIMIT 1)
    UNION ALL
    SELECT next.pool, next.dag_id FROM keys CROSS JOIN LATERAL (
        SELECT t.pool, t.dag_id FROM scheduler_task_instance t
        WHERE t.state = 'scheduled' AND (t.pool, t.dag_id) > (keys.pool, keys.dag_id)
        ORDER BY t.pool, t.dag_id LIMIT 1
    ) next
)
SELECT pool, dag_id FROM keys LIMIT %(limit)s
"""
_OF_KEYS = f"""
SELECT {", ".join(f"t.{name.strip()}" for name in _COLUMNS.split(","))}
FROM unnest(%(pools)s::text[], %(dags)s::text[]) AS k(pool, dag_id)
CROSS JOIN LATERAL (
    SELECT * FROM scheduler_task_instance
    WHERE state = 'scheduled' AND pool = k.pool AND dag_id = k.dag_id ORDER BY {_ORDER} LIMIT %(rows)s
) t
"""
_ACTIVE = """
SELECT dag_id, dag_run_id, task_id, pool, state, count(*), sum(pool_slots) FROM scheduler_task_instance
WHERE state IN ('queued', 'running', 'restarting', 'deferred') GROUP BY 1, 2, 3, 4, 5
"""
#: Hand-outs of ours that their executor has still to take.
_OUTBOX = """
SELECT executor, count(*) FROM scheduler_task_instance
WHERE state = 'queued' AND handed_out_at IS NULL AND queued_by_job_id = %(job)s GROUP BY executor
"""
_POOLS = "SELECT pool, slots, include_deferred FROM scheduler_pool"
#: Of these runs, the ones whose tasks may be handed out at all.
_OPEN_RUNS = """
SELECT r.id, d.max_active_tasks FROM scheduler_dag_run r JOIN scheduler_dag d ON d.dag_id = r.dag_id
WHERE r.id = ANY(%(runs)s) AND r.state = 'running' AND NOT d.is_paused AND NOT d.is_stale
  AND (r.held_at IS NULL OR r.held_until <= %(now)s)
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
    page = [Ready(*row) for row in db.fetch(_FIRST_PAGE, {"limit": tick.limit})]
    if not page:
        return 0
    use = _in_use()
    room = _room(tick, use, slots)
    admitted, refused = _admit(page, room, tick)
    if len(page) == tick.limit and any(free > 0 for free in room.executors.values()):
        behind = _behind(page, room)
        more, refused_too = _admit(behind, room, tick)
        admitted += more
        refused += refused_too
    metrics.TASKS_REFUSED.clear()
    for code, count in Counter(refusal.code for _, refusal in refused).items():
        metrics.TASKS_REFUSED.labels(code).set(count)
    failed = _fail_hopeless(refused, tick)
    queued = transitions.tasks("queue", sorted(admitted), tick.now, queued_by_job_id=tick.job_id)
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


def _room(tick: Tick, use: _Use, slots: dict[str, int]) -> Room:
    totals: dict[str, int] = {}
    used: dict[str, int] = {}
    for pool, total, include_deferred in db.fetch(_POOLS):
        totals[pool] = total
        used[pool] = sum(n for state, n in use.pools[pool].items() if include_deferred or state != "deferred")
    default = next(iter(tick.executors))
    executors: dict[str | None, int] = {name: max(0, free) for name, free in slots.items()}
    executors[None] = executors.pop(default)
    return Room(
        pool_slots=totals,
        pool_used=used,
        executors=executors,
        runs=use.runs,
        dags=use.dags,
        tasks=use.tasks,
        run_tasks=use.run_tasks,
    )


def _admit(page: Sequence[Ready], room: Room, tick: Tick) -> tuple[list[int], list[tuple[int, Refusal]]]:
    """One page through ``engine.admission``, in the global order, without the rows whose run stands still."""
    if not page:
        return [], []
    limits = dict(db.fetch(_OPEN_RUNS, {"runs": list({row.run_id for row in page}), "now": tick.now}))
    overdue = tick.now - timedelta(seconds=tick.conf.wide_task_wait_seconds)
    default = next(iter(tick.executors))
    candidates = [
        Candidate(
            id=row.id,
            dag_id=row.dag_id,
            run_id=row.run_id,
            task_id=row.task_id,
            pool=row.pool,
            pool_slots=row.pool_slots,
            executor=None if row.executor == default else row.executor,
            max_active_tasks=limits[row.run_id],
            max_active_tis_per_dag=row.max_active_tis_per_dag,
            max_active_tis_per_dagrun=row.max_active_tis_per_dagrun,
            overdue=row.scheduled_when <= overdue,
        )
        for row in fair_order(page)
        if row.run_id in limits and not row.held(tick.now)
    ]
    admission = admit(candidates, room)
    return list(admission.admitted), list(admission.refused)


def fair_order(page: Sequence[Ready]) -> list[Ready]:
    """Priority first, then the rank within the row's DAG (so equal priorities share fairly), then age, then id (I4)."""
    rank: Counter[tuple[int, str]] = Counter()
    keyed = []
    for row in sorted(page, key=lambda row: (-row.priority_weight, row.scheduled_when, row.id)):
        key = (row.priority_weight, row.dag_id)
        keyed.append(((-row.priority_weight, rank[key], row.scheduled_when, row.id), row))
        rank[key] += 1
    return [row for _, row in sorted(keyed, key=lambda pair: pair[0])]


def _behind(page: Sequence[Ready], room: Room) -> list[Ready]:
    """Rows behind a clogged page, of the keys whose pool still has room."""
    seen = {row.id for row in page}
    keys = [
        (pool, dag_id)
        for pool, dag_id in db.fetch(_KEYS, {"limit": KEYS})
        if room.pool_slots.get(pool, -1) < 0 or room.pool_slots[pool] > room.pool_used.get(pool, 0)
    ]
    if not keys:
        return []
    rows = db.fetch(
        _OF_KEYS, {"pools": [key[0] for key in keys], "dags": [key[1] for key in keys], "rows": ROWS_PER_KEY}
    )
    return [Ready(*row) for row in rows if row[0] not in seen]


def _fail_hopeless(refused: Sequence[tuple[int, Refusal]], tick: Tick) -> int:
    """What can never run (a task wider than its pool) ends with the reason instead of waiting for ever (S-05)."""
    never = sorted((key, refusal.text) for key, refusal in refused if refusal.never)
    moved = transitions.tasks("fail", [key for key, _ in never], tick.now, reason=[text for _, text in never])
    return len(moved)
