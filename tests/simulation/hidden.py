"""I4: an admission that gave nobody a slot leaves nobody behind who could have had one.

What each limit has left is counted here in a statement of its own, from the rows alone. Where slots are kept for
somebody (an overdue wide task, one whose trigger fired) the others of that pool or limit may wait for good reason.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from scheduler_app.engine.limits import decode
from scheduler_app.models import Pool, db

from .cast import LIMITS

if TYPE_CHECKING:
    from .schedulers import Scheduler
    from .world import World

_WAITING = """
SELECT ti.id, ti.dag_id, ti.dag_run_id, ti.task_id, ti.pool, ti.pool_slots, ti.max_active_tis_per_dag,
       ti.max_active_tis_per_dagrun, ti.limits, ti.scheduled_when, ti.next_method IS NOT NULL,
       r.state = 'running' AND NOT d.is_paused AND NOT d.is_stale
       AND (ti.held_at IS NULL OR ti.held_until <= %(now)s) AND (r.held_at IS NULL OR r.held_until <= %(now)s),
       d.max_active_tasks
FROM scheduler_task_instance ti JOIN scheduler_dag_run r ON r.id = ti.dag_run_id
JOIN scheduler_dag d ON d.dag_id = ti.dag_id WHERE ti.state = 'scheduled' ORDER BY ti.id
"""
_ACTIVE = """
SELECT dag_id, dag_run_id, task_id, pool, pool_slots, limits, state = 'deferred' FROM scheduler_task_instance
WHERE state IN ('queued', 'running', 'restarting', 'deferred')
"""
#: Hand-outs of a scheduler of which its executor may have to be told.
_UNTOLD = """
SELECT count(*) FROM scheduler_task_instance
WHERE state = 'queued' AND handed_out_at IS NULL AND queued_by_job_id = %s
"""


class _Row(NamedTuple):
    id: int
    dag_id: str
    run_id: int
    task_id: str
    pool: str
    slots: int
    per_dag: int | None
    per_run: int | None
    limits: str
    since: Any
    resumed: bool
    may_go: bool
    max_active_tasks: int


def check(world: World, scheduler: Scheduler) -> None:
    """Nothing stands open, and the admission of this moment by this scheduler found nothing."""
    if scheduler.executor.slots_available() <= db.fetch(_UNTOLD, [scheduler.job_id])[0][0]:
        return
    waiting = [_Row(*row) for row in db.fetch(_WAITING, {"now": world.now})]
    if not waiting:
        return
    used = _used(world, waiting)
    kept = _kept(world, waiting)
    for row in waiting:
        if (
            row.may_go
            and not (kept & {row.pool, *(name for name, _ in decode(row.limits))})
            and _fits(row, used, world)
        ):
            world.fail("I4", f"nobody got a slot, and {row} waits for nothing")


def _used(world: World, waiting: list[_Row]) -> Counter[Any]:
    used: Counter[Any] = Counter()
    for dag_id, run_id, task_id, pool, slots, limits, deferred in db.fetch(_ACTIVE):
        used.update([("run", run_id), ("dag", dag_id), (dag_id, task_id), (run_id, task_id)])
        if not deferred or pool in world.keeping:
            used["pool", pool] += slots
        for name, units in decode(limits):
            used["limit", name] += units if LIMITS[name][1] is None else 0
    for at, name, units in world.ledger.handed:
        seconds = LIMITS[name][1]
        if seconds is not None and at > world.now - timedelta(seconds=seconds):
            used["limit", name] += units
    return used


def _kept(world: World, waiting: list[_Row]) -> set[str]:
    """Pools and limits of which something may be kept."""
    overdue = world.now - timedelta(seconds=world.conf.wide_task_wait_seconds)
    kept: set[str] = set()
    for row in waiting:
        if row.resumed:
            kept |= {row.pool, *(name for name, _ in decode(row.limits))}
        if row.since <= overdue:
            kept |= {row.pool} if row.slots > 1 else set()
            kept |= {name for name, units in decode(row.limits) if units > 1}
    return kept


def _fits(row: _Row, used: Counter[Any], world: World) -> bool:
    total = Pool.objects.get(pool=row.pool).slots
    per_run = world.conf.max_active_tasks_per == "run"
    limits = [(row.max_active_tasks or None, used["run", row.run_id] if per_run else used["dag", row.dag_id])]
    limits += [(row.per_dag, used[row.dag_id, row.task_id]), (row.per_run, used[row.run_id, row.task_id])]
    if any(most is not None and count >= most for most, count in limits):
        return False
    if used["pool", row.pool] + row.slots > total:
        return False
    return all(used["limit", name] + units <= world.keyed[name].value for name, units in decode(row.limits))
