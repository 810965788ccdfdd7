"""Who runs attempts, and which: workers with what they hold, queues with what waits for them, triggerers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Count, Min, Q, QuerySet

from scheduler_app.conf import conf
from scheduler_app.models import Job, TaskInstance, Trigger, db
from scheduler_app.models.worker_slots import CELERY

#: A local runner is the pair of its scheduler; a Celery worker stands for itself.
WORKER_TYPES: Final = ("LocalTaskJob", "CeleryWorkerJob")
#: Attempts that are named for each worker; their number says how many there are.
NAMED: Final = 50
#: Workers that ended or fell silent are listed for so long, at most so many.
REMEMBERED: Final = timedelta(hours=1)
ENDED_SHOWN: Final = 20

ALIVE, SILENT, ENDED, LOST = "alive", "silent", "ended", "lost"


@dataclass(frozen=True, slots=True)
class Running:
    """One attempt that a worker runs now."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    #: running, or restarting: it was cleared and is being stopped
    state: str
    queue: str
    pid: int | None
    since: datetime | None
    heartbeat_at: datetime | None


@dataclass(frozen=True, slots=True)
class Worker:
    """One process that runs attempts. ``busy`` counts them all, ``running`` names those that the asker may see."""

    job_id: int
    job_type: str
    name: str
    hostname: str
    unixname: str
    pid: int | None
    #: alive; silent: its lease is over, nobody has ended it yet; ended: in order; lost: it crashed or fell silent
    condition: str
    slots: int
    #: empty: every queue of its own scheduler
    queues: tuple[str, ...]
    started_at: datetime
    heartbeat_at: datetime
    ended_at: datetime | None
    busy: int
    running: tuple[Running, ...]

    @property
    def free(self) -> int:
        return max(0, self.slots - self.busy) if self.condition == ALIVE else 0


@dataclass(frozen=True, slots=True)
class Queue:
    """A Celery queue: what waits for it, what runs from it, and the living workers that listen to it."""

    name: str
    waiting: int
    running: int
    oldest: datetime | None
    workers: int
    slots: int

    @property
    def unheard(self) -> bool:
        """Something waits, and nobody listens: start a worker with ``-Q <name>``."""
        return self.waiting > 0 and self.workers == 0


@dataclass(frozen=True, slots=True)
class Triggerer:
    job_id: int
    hostname: str
    pid: int | None
    condition: str
    capacity: int
    held: int
    started_at: datetime
    heartbeat_at: datetime


_WAITS: Final = Q(state="queued")
_QUEUE_NUMBERS: Final[dict[str, Any]] = {
    "waiting": Count("id", filter=_WAITS),
    "running": Count("id", filter=~_WAITS),
    "oldest": Min("queued_when", filter=_WAITS),
}
_HELD: Final = """
SELECT job_id, count(*) FROM scheduler_task_instance
WHERE state IN ('running', 'restarting') AND job_id = ANY(%s) GROUP BY job_id
"""
#: The oldest of each worker, through the small index of rows with a process.
_NAMED: Final = """
SELECT id FROM (
    SELECT id, row_number() OVER (PARTITION BY job_id ORDER BY start_date, id) AS place
    FROM scheduler_task_instance WHERE state IN ('running', 'restarting') AND job_id = ANY(%s)) held
WHERE place <= %s
"""


def workers(jobs: QuerySet[Job], visible: QuerySet[TaskInstance], now: datetime) -> list[Worker]:
    """Living and silent workers first, then those that ended within :data:`REMEMBERED`. Five statements."""
    kinds = jobs.filter(job_type__in=WORKER_TYPES)
    rows = [*kinds.filter(state="running").order_by("hostname", "id")]
    rows += kinds.exclude(state="running").filter(end_date__gt=now - REMEMBERED).order_by("-end_date")[:ENDED_SHOWN]
    keys = [row.pk for row in rows]
    if not keys:
        return []
    held = dict(db.fetch(_HELD, [keys]))
    named = _running(visible, keys)
    return [_worker(row, now, held.get(row.pk, 0), named.get(row.pk, [])) for row in rows]


def queues(living: Sequence[Worker]) -> list[Queue]:
    """The Celery queues in which something waits or runs, or to which one of these workers listens. One statement."""
    values = conf()
    own = Q(executor=CELERY)
    if values.executors[0] == CELERY:
        own |= Q(executor__isnull=True)
    counted = TaskInstance.objects.filter(own, state__in=("queued", "running", "restarting")).values("queue")
    found = {row["queue"]: row for row in counted.annotate(**_QUEUE_NUMBERS)}
    listening = [one for one in living if one.condition == ALIVE and one.queues]
    names = sorted({*found, *(name for one in listening for name in one.queues)})
    return [_queue(name, found.get(name, {}), [one for one in listening if name in one.queues]) for name in names]


def triggerers(jobs: QuerySet[Job], now: datetime) -> list[Triggerer]:
    """The triggerers that call themselves running, and how many triggers each holds. Two statements."""
    rows = list(jobs.filter(job_type="TriggererJob", state="running").order_by("hostname", "id"))
    mine = Trigger.objects.filter(triggerer_id__in=[row.pk for row in rows]).values("triggerer_id")
    held = {row["triggerer_id"]: row["count"] for row in mine.annotate(count=Count("id"))}
    return [
        Triggerer(
            job_id=row.pk,
            hostname=row.hostname,
            pid=row.pid,
            condition=condition(row, now),
            capacity=int(row.detail.get("capacity", 0)),
            held=held.get(row.pk, 0),
            started_at=row.start_date,
            heartbeat_at=row.latest_heartbeat,
        )
        for row in rows
    ]


def _running(visible: QuerySet[TaskInstance], keys: Sequence[int]) -> dict[int, list[Running]]:
    ids = [row[0] for row in db.fetch(_NAMED, [list(keys), NAMED])]
    found: dict[int, list[Running]] = {}
    for row in visible.filter(pk__in=ids).select_related("dag_run").order_by("start_date", "id"):
        found.setdefault(int(row.job_id or 0), []).append(
            Running(
                dag_id=row.dag_id,
                run_id=row.dag_run.run_id,
                task_id=row.task_id,
                map_index=row.map_index,
                try_number=row.try_number,
                state=str(row.state),
                queue=row.queue,
                pid=row.pid,
                since=row.start_date,
                heartbeat_at=row.heartbeat_at,
            )
        )
    return found


def _worker(row: Job, now: datetime, busy: int, running: list[Running]) -> Worker:
    return Worker(
        job_id=row.pk,
        job_type=row.job_type,
        name=str(row.detail.get("worker") or f"{row.hostname}:{row.pid}"),
        hostname=row.hostname,
        unixname=row.unixname,
        pid=row.pid,
        condition=condition(row, now),
        slots=int(row.detail.get("slots", 0)),
        queues=tuple(row.detail.get("queues", ())),
        started_at=row.start_date,
        heartbeat_at=row.latest_heartbeat,
        ended_at=row.end_date,
        busy=busy,
        running=tuple(running),
    )


def condition(row: Job, now: datetime) -> str:
    """How a process stands: what ``Worker.condition`` says."""
    if row.state == "running":
        return ALIVE if row.is_alive(now, conf().lease_seconds) else SILENT
    return ENDED if row.state == "success" else LOST


def _queue(name: str, numbers: Mapping[str, Any], listening: Sequence[Worker]) -> Queue:
    return Queue(
        name=name,
        waiting=numbers.get("waiting", 0),
        running=numbers.get("running", 0),
        oldest=numbers.get("oldest"),
        workers=len(listening),
        slots=sum(one.slots for one in listening),
    )
