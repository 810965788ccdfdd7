"""Who would run a task: the executor's slots for one that waits, its workers and queue for one that was handed out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db.models import Q

from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.engine.explain import Verdict
from scheduler_app.engine.wording import counted
from scheduler_app.models import Job, TaskInstance
from scheduler_app.models.worker_slots import CELERY, celery_free, celery_workers

#: Executors whose runners are processes that write heartbeats; of any other it is not known what it has.
_WITH_RUNNERS: Final = frozenset({"LocalExecutor", "InlineExecutor"})
_HOLDING: Final = (states.QUEUED, states.RUNNING, states.RESTARTING)


class Slots(NamedTuple):
    """Free slots of an executor (None: no scheduler has it), and a sentence about where they are or went."""

    free: int | None
    text: str


def name_of(instance: TaskInstance) -> str:
    return instance.executor or conf().executors[0]


def slots(instance: TaskInstance, now: datetime, lease: timedelta) -> Slots:
    """As the scheduler counts them before it takes work. At most two queries."""
    name = name_of(instance)
    if name not in conf().executors:
        return Slots(None, "")
    is_default = name == conf().executors[0]
    if name == CELERY:
        workers = celery_workers()
        free, total = celery_free(workers, is_default=is_default, job_id=0), sum(one for one, _ in workers)
        return Slots(free, _full(total, counted(len(workers), "worker")) if workers else _no_worker(instance))
    if name not in _WITH_RUNNERS:
        return Slots(1, "")
    runners = Job.objects.alive(now, lease.total_seconds()).filter(executor_class=name).values_list("detail", flat=True)
    total = sum(detail.get("slots", 0) for detail in runners)
    if not total:
        return Slots(0, f"No runner of {name} is alive: each scheduler starts one, so its log says why there is none.")
    mine = Q(executor=name) | Q(executor__isnull=True) if is_default else Q(executor=name)
    taken = TaskInstance.objects.filter(mine, state__in=_HOLDING).count()
    return Slots(max(0, total - taken), _full(total, "its runners"))


def _full(total: int, whose: str) -> str:
    return f"{counted(total, 'slot')} of {whose} {'is' if total == 1 else 'are'} taken."


def _no_worker(instance: TaskInstance) -> str:
    return f"No Celery worker is alive. Start one: celery -A scheduler_app worker -Q {instance.queue}"


def handed_out(instance: TaskInstance, now: datetime, lease: timedelta) -> list[Verdict]:
    """What became of a hand-out that has not begun. One query."""
    waited = (now - instance.handed_out_at).total_seconds() if instance.handed_out_at else 0.0
    alive = Job.objects.alive(now, lease.total_seconds()).filter(job_type__in=("LocalTaskJob", "CeleryWorkerJob"))
    name = name_of(instance)
    details = list(alive.filter(executor_class=name).values_list("detail", flat=True))
    if name == CELERY:
        return _in_broker(instance.queue, details, waited)
    if name in _WITH_RUNNERS and not details:
        text = f"No runner of {name} is alive that could start it. Its scheduler starts another and hands it out again."
        return [Verdict("workers", False, text, {"alive": 0})]
    text = f"{counted(len(details), 'runner')} of {name} {'is' if len(details) == 1 else 'are'} alive."
    begins = f"A runner has it and starts its process, for {waited:.0f} s now."
    return [
        Verdict("workers", True, text, {"alive": len(details)}),
        Verdict("start", False, begins, {"seconds": waited}),
    ]


def _in_broker(queue: str, details: list[dict[str, Any]], waited: float) -> list[Verdict]:
    """Whether a living worker listens to that queue."""
    heard = [detail for detail in details if queue in detail.get("queues", (queue,))]
    facts = {"alive": len(heard), "queue": queue}
    if not heard:
        others = f" ({_listen(len(details))} to others)" if details else ""
        text = f"No worker listens to its queue {queue}{others}. Start one: celery -A scheduler_app worker -Q {queue}"
        return [Verdict("workers", False, text, facts)]
    many = counted(sum(int(detail.get("slots", 0)) for detail in heard), "slot")
    text = f"It waits in queue {queue} of the broker for a worker to take it, for {waited:.0f} s now."
    return [
        Verdict("workers", True, f"{_listen(len(heard))} to queue {queue}, with {many}.", facts),
        Verdict("start", False, text, {"seconds": waited}),
    ]


def _listen(workers: int) -> str:
    return f"{counted(workers, 'worker')} {'listens' if workers == 1 else 'listen'}"
