"""Say that attempts are alive, and hear which of them must stop: one statement for all of a runner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from scheduler_app.engine import states
from scheduler_app.models import db
from scheduler_app.runner import buffers
from scheduler_app.runner.buffers import Buffer, Owner


@dataclass(frozen=True, slots=True)
class Beat:
    """A living attempt: its owner's row, its fence, its process, and what it pushed since the last beat."""

    owner: Owner
    fence: int
    pid: int | None
    buffer: Buffer


#: Locked by key first, like every writer of many rows.
_BEAT = """
WITH w AS (SELECT * FROM unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(pids)s::int[]) AS w(id, fence, pid)),
locked AS MATERIALIZED (
    SELECT ti.id FROM scheduler_task_instance ti JOIN w ON w.id = ti.id AND w.fence = ti.fence
    WHERE coalesce(ti.state, 'none') IN ('running', 'restarting') ORDER BY ti.id FOR NO KEY UPDATE OF ti)
UPDATE scheduler_task_instance ti SET heartbeat_at = %(now)s, pid = w.pid
FROM locked JOIN w ON w.id = locked.id WHERE ti.id = locked.id
RETURNING ti.id, ti.state, ti.reason
"""
_TAKEN = """
SELECT ti.id, ti.reason FROM unnest(%(ids)s::bigint[], %(fences)s::bigint[]) AS w(id, fence)
JOIN scheduler_task_instance ti ON ti.id = w.id AND ti.fence = w.fence
"""


@dataclass(frozen=True, slots=True)
class Pulse:
    """``foreign``: rows that are no longer the attempt's own; ``restarting``: cleared, they go on as another try.
    Each with the reason that its row gives."""

    foreign: Mapping[int, str | None]
    restarting: Mapping[int, str | None]


def beat(beats: Sequence[Beat], now: datetime) -> Pulse:
    """One transaction. The buffers that were written are the callers' to empty (:meth:`Buffer.take` before)."""
    if not beats:
        return Pulse({}, {})
    ids, fences = [item.owner.ti_id for item in beats], [item.fence for item in beats]
    with db.atomic():
        params = {"now": now, "ids": ids, "fences": fences, "pids": [item.pid for item in beats]}
        rows = {key: (state, reason) for key, state, reason in db.fetch(_BEAT, params)}
        own = [(item.owner, item.buffer) for item in beats if rows.get(item.owner.ti_id, ("",))[0] == states.RUNNING]
        buffers.write([(owner, buffer) for owner, buffer in own if buffer.dirty], now)
        taken = [(key, fence) for key, fence in zip(ids, fences, strict=True) if key not in rows]
        foreign: dict[int, str | None] = dict.fromkeys(key for key, _ in taken)
        if taken:
            keys, numbers = zip(*taken, strict=True)
            foreign |= dict(db.fetch(_TAKEN, {"ids": list(keys), "fences": list(numbers)}))
    return Pulse(foreign, {key: reason for key, (state, reason) in rows.items() if state == states.RESTARTING})
