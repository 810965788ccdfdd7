"""Hands the queued rows of this scheduler to their executors, outside any transaction, then stamps them.

The queued row that is not handed out yet *is* the outbox (design decision 8): a crash before the stamp hands it out
again, and the fence lets only one of the two start. An executor of this process knows what it has taken, so its rows
are stamped only when many wait or one has waited for long: most have begun by then, which saves a write for each.

What this pass has queued need not be read again: where the outbox was read a moment ago and the executor refused
nothing, it is handed over as the admission left it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from weakref import WeakKeyDictionary

from scheduler_app.executors.base import Executor, HandOut
from scheduler_app.models import db
from scheduler_app.scheduler.tick import Tick

#: What the executor knows is stamped together, when so many wait to begin or the first has waited so long.
_MANY = 32
_LONG = timedelta(seconds=1)

#: Of one executor, so that what another one refuses hides nothing; rows of an executor that we lack go to the default.
_OUTBOX = """
SELECT queued_when, id, fence, dag_id, queue, priority_weight FROM scheduler_task_instance
WHERE state = 'queued' AND handed_out_at IS NULL AND queued_by_job_id = %(job)s
  AND (executor = %(name)s OR (%(is_default)s AND (executor IS NULL OR executor <> ALL(%(names)s::text[]))))
ORDER BY priority_weight DESC, queued_when, id LIMIT %(limit)s
"""

#: Guarded by the fence: a row that was cleared, or already started, meanwhile is left as it is. One that somebody holds
#: is being started: waiting for it, out of key order at that, deadlocked with the runner's claim (seen in its log).
_STAMP = """
WITH waiting AS MATERIALIZED (
    SELECT ti.id FROM scheduler_task_instance ti
    JOIN unnest(%(ids)s::bigint[], %(fences)s::bigint[]) AS w(id, fence) ON w.id = ti.id AND w.fence = ti.fence
    WHERE coalesce(ti.state, 'none') = 'queued' ORDER BY ti.id FOR NO KEY UPDATE OF ti SKIP LOCKED
)
UPDATE scheduler_task_instance ti SET handed_out_at = %(now)s FROM waiting WHERE ti.id = waiting.id
"""


def run(tick: Tick) -> int:
    """Each executor by itself; the first error is raised when all the others have been served."""
    handed = 0
    errors: list[Exception] = []
    for name in tick.executors:
        try:
            handed += _hand_out(name, tick)
        except Exception as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return handed


class _Waiting(NamedTuple):
    queued_when: datetime
    hand_out: HandOut


class _Read(NamedTuple):
    """When the outbox was read last, and how many were handed over since then without reading it."""

    at: datetime
    since: int


#: Of the executors that refused nothing since.
_reads: WeakKeyDictionary[Executor, _Read] = WeakKeyDictionary()


def _hand_out(name: str, tick: Tick) -> int:
    executor = tick.executors[name]
    read = _reads.pop(executor, None)  # put back when all goes well
    fresh = [one.hand_out for one in tick.queued if tick.executor(one.executor) is executor]
    if not fresh or read is None or not timedelta() <= tick.now - read.at < _LONG or read.since + len(fresh) > _MANY:
        return _hand_out_all(name, tick)
    fresh.sort(key=lambda hand_out: (-hand_out.priority, hand_out.ti_id))
    refused = _give(executor, fresh, [], tick.now)
    if not refused:
        _reads[executor] = read._replace(since=read.since + len(fresh))
    return len(fresh) - len(refused)


def _hand_out_all(name: str, tick: Tick) -> int:
    executor = tick.executors[name]
    batch = _outbox(name, tick)
    if not batch:
        return 0
    known = [waiting for waiting in batch if executor.knows(waiting.hand_out)]
    told = {waiting.hand_out for waiting in known}
    fresh = [waiting.hand_out for waiting in batch if waiting.hand_out not in told]
    is_time = len(known) >= _MANY or any(tick.now - waiting.queued_when >= _LONG for waiting in known)
    refused = _give(executor, fresh, list(told) if is_time else [], tick.now)
    if not refused and len(batch) < tick.limit:
        _reads[executor] = _Read(tick.now, 0)
    return len(fresh) - len(refused)


def _give(executor: Executor, fresh: Sequence[HandOut], stamped: Sequence[HandOut], now: datetime) -> set[HandOut]:
    """Hands over what is fresh and stamps what the executor does not keep in mind, and ``stamped``; what it refused."""
    refused = set(executor.accept(fresh)) if fresh else set()
    taken = [hand_out for hand_out in fresh if hand_out not in refused and not executor.knows(hand_out)]
    stamp = [*taken, *stamped]
    if stamp:
        ids, fences = [hand_out.ti_id for hand_out in stamp], [hand_out.fence for hand_out in stamp]
        with db.atomic():
            db.execute(_STAMP, {"now": now, "ids": ids, "fences": fences})
    return refused


def _outbox(name: str, tick: Tick) -> Sequence[_Waiting]:
    params = {
        "job": tick.job_id,
        "name": name,
        "is_default": tick.executors[name] is tick.default_executor,
        "names": list(tick.executors),
        "limit": tick.limit,
    }
    return [
        _Waiting(queued_when, HandOut(ti_id=ti_id, fence=fence, dag_id=dag_id, queue=queue, priority=priority))
        for queued_when, ti_id, fence, dag_id, queue, priority in db.fetch(_OUTBOX, params, keep_plan=True)
    ]
