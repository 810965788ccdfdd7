"""Slots of Celery workers: counted by their executor before it takes work, and by the answer to "why?" alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from . import db
from .job import Job

CELERY: Final = "CeleryExecutor"
#: What holds a slot of a worker, or will: the outbox of this scheduler is counted by the one who asks.
_OPEN = """
SELECT queue, count(*) FROM scheduler_task_instance
WHERE state IN ('queued', 'running', 'restarting') AND (executor = %(name)s OR (%(is_default)s AND executor IS NULL))
  AND NOT (state = 'queued' AND handed_out_at IS NULL AND queued_by_job_id = %(job)s)
GROUP BY queue
"""


def free_slots(workers: Sequence[tuple[int, Sequence[str]]], open_by_queue: Mapping[str, int]) -> int:
    """Slots that are free on workers (slots, queues).

    What waits for a queue beyond the slots of its workers takes nothing away from the other queues.
    """
    total = sum(slots for slots, _ in workers)
    used = 0
    for queue, count in open_by_queue.items():
        used += min(count, sum(slots for slots, queues in workers if queue in queues))
    return max(0, total - used)


def celery_workers() -> list[tuple[int, Sequence[str]]]:
    """(slots, queues) of the workers that call themselves running. One query."""
    found = Job.objects.filter(job_type="CeleryWorkerJob", state="running").values_list("detail", flat=True)
    return [(int(detail.get("slots", 0)), detail.get("queues", ())) for detail in found]


def celery_free(workers: Sequence[tuple[int, Sequence[str]]], *, is_default: bool, job_id: int) -> int:
    """What is left of the slots of these workers for a scheduler. At most one query."""
    if not workers:
        return 0
    return free_slots(workers, dict(db.fetch(_OPEN, {"name": CELERY, "is_default": is_default, "job": job_id})))
