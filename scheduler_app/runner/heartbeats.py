"""Say that attempts are alive, and hear which of them must stop: one statement for all of a runner."""

from __future__ import annotations

from collections.abc import Sequence
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
RETURNING ti.id, ti.state
"""


@dataclass(frozen=True, slots=True)
class Pulse:
    """``foreign``: rows that are no longer the attempt's own; ``restarting``: cleared, they go on as another try."""

    foreign: frozenset[int]
    restarting: frozenset[int]


def beat(beats: Sequence[Beat], now: datetime) -> Pulse:
    """One transaction. The buffers that were written are the callers' to empty (:meth:`Buffer.take` before)."""
    if not beats:
        return Pulse(frozenset(), frozenset())
    with db.atomic():
        rows = dict(
            db.fetch(
                _BEAT,
                {
                    "now": now,
                    "ids": [item.owner.ti_id for item in beats],
                    "fences": [item.fence for item in beats],
                    "pids": [item.pid for item in beats],
                },
            )
        )
        own = [(item.owner, item.buffer) for item in beats if rows.get(item.owner.ti_id) == states.RUNNING]
        buffers.write([(owner, buffer) for owner, buffer in own if buffer.dirty], now)
    return Pulse(
        frozenset(item.owner.ti_id for item in beats) - rows.keys(),
        frozenset(key for key, state in rows.items() if state == states.RESTARTING),
    )
