"""Hands the queued rows of this scheduler to their executors, outside any transaction, then stamps them.

The queued row that is not handed out yet *is* the outbox (design decision 8): a crash before the stamp hands it out
again, and the fence lets only one of the two start.
"""

from __future__ import annotations

from collections import defaultdict

from scheduler_app.executors.base import HandOut
from scheduler_app.models import db
from scheduler_app.scheduler.tick import Tick

_OUTBOX = """
SELECT id, fence, dag_id, queue, priority_weight, executor FROM scheduler_task_instance
WHERE state = 'queued' AND handed_out_at IS NULL AND queued_by_job_id = %(job)s
ORDER BY priority_weight DESC, queued_when, id LIMIT %(limit)s
"""

#: Guarded by the fence: a row that was cleared, or already started, meanwhile is left as it is.
_STAMP = """
UPDATE scheduler_task_instance ti SET handed_out_at = %(now)s
FROM unnest(%(ids)s::bigint[], %(fences)s::bigint[]) AS w(id, fence)
WHERE ti.id = w.id AND ti.fence = w.fence AND coalesce(ti.state, 'none') = 'queued'
"""


def run(tick: Tick) -> int:
    rows = db.fetch(_OUTBOX, {"job": tick.job_id, "limit": tick.limit})
    batches: dict[str | None, list[HandOut]] = defaultdict(list)
    for ti_id, fence, dag_id, queue, priority, executor in rows:
        batches[executor].append(HandOut(ti_id=ti_id, fence=fence, dag_id=dag_id, queue=queue, priority=priority))
    handed: list[HandOut] = []
    for name, batch in batches.items():
        refused = set(tick.executor(name).accept(batch))
        handed += [hand_out for hand_out in batch if hand_out not in refused]
    if handed:
        with db.atomic():
            db.execute(
                _STAMP,
                {
                    "now": tick.now,
                    "ids": [hand_out.ti_id for hand_out in handed],
                    "fences": [hand_out.fence for hand_out in handed],
                },
            )
    return len(handed)
