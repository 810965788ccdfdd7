"""Which limit keeps a scheduled task from a slot, who holds what it waits for, and how many are before it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, Q, QuerySet

from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.engine.admission import Candidate, Refusal, Room, refuse
from scheduler_app.engine.explain import Verdict
from scheduler_app.engine.limits import decode
from scheduler_app.models import DagRun, Job, Limit, Pool, TaskInstance
from scheduler_app.models.limit import naming

#: Holders that a sentence names before it says "and n more".
_NAMED: Final = 4
#: Refusals that no end of another task and no time takes away.
_NOT_BY_WAITING: Final = frozenset({"pool_unknown", "limit_unknown", "limit_closed"})
_ACTIVE: Final = [one for one in states.ACTIVE if one]


def limits(
    instance: TaskInstance, run: DagRun, now: datetime, lease: timedelta, visible: QuerySet[TaskInstance] | None
) -> list[Verdict]:
    """Pools and other limits, at the counts of this moment. Five to nine queries."""
    refusal = refuse(_candidate(instance, run), _room(instance, run, now, lease))
    if refusal is None:
        return [Verdict("limits", True, f"No limit is in its way: pool {instance.pool} has room."), _place(instance)]
    until = {"until": refusal.until.isoformat()} if refusal.until else {}
    facts = refusal.facts | until
    verdict = Verdict(refusal.code, False, refusal.text + _holders(instance, refusal, visible), facts)
    alone = refusal.never or refusal.code in _NOT_BY_WAITING
    return [verdict] if alone else [verdict, _place(instance)]


def _candidate(instance: TaskInstance, run: DagRun) -> Candidate:
    return Candidate(
        id=instance.pk,
        dag_id=instance.dag_id,
        run_id=run.pk,
        task_id=instance.task_id,
        pool=instance.pool,
        pool_slots=instance.pool_slots,
        executor=instance.executor,
        max_active_tasks=run.dag.max_active_tasks,
        max_active_tis_per_dag=instance.max_active_tis_per_dag,
        max_active_tis_per_dagrun=instance.max_active_tis_per_dagrun,
        limits=decode(instance.limits),
    )


def _room(instance: TaskInstance, run: DagRun, now: datetime, lease: timedelta) -> Room:
    use = Pool.objects.use()
    active = TaskInstance.objects.filter(dag_id=run.dag_id, state__in=_ACTIVE)
    counts = active.aggregate(
        run=Count("id", filter=Q(dag_run=run)),
        dag=Count("id"),
        task=Count("id", filter=Q(task_id=instance.task_id)),
        run_task=Count("id", filter=Q(dag_run=run, task_id=instance.task_id)),
    )
    return Room(
        pool_slots={name: one.slots for name, one in use.items()},
        executors={instance.executor: _free(instance.executor, now, lease)},
        pool_used={name: one.occupied for name, one in use.items()},
        runs={run.pk: counts["run"]},
        dags={run.dag_id: counts["dag"]},
        tasks={(run.dag_id, instance.task_id): counts["task"]},
        run_tasks={(run.pk, instance.task_id): counts["run_task"]},
        limits=Limit.objects.allowances(now) if instance.limits else {},
        max_active_tasks_per=conf().max_active_tasks_per,
    )


def _free(executor: str | None, now: datetime, lease: timedelta) -> int:
    """Free slots of an executor whose runners say how many they have; of any other one slot is taken to be free."""
    default = conf().executors[0]
    name = executor or default
    runners = Job.objects.alive(now, lease.total_seconds()).filter(executor_class=name).values_list("detail", flat=True)
    slots = [detail["slots"] for detail in runners if "slots" in detail]
    if not slots:
        return 1
    mine = Q(executor=name) | Q(executor__isnull=True) if name == default else Q(executor=name)
    taken = TaskInstance.objects.filter(mine, state__in=[states.QUEUED, states.RUNNING, states.RESTARTING]).count()
    return max(0, sum(slots) - taken)


def _holders(instance: TaskInstance, refusal: Refusal, visible: QuerySet[TaskInstance] | None) -> str:
    """Who has what it waits for, as far as the reader may see them."""
    if visible is None or refusal.code == "pool_reserved":
        return ""
    active = visible.filter(state__in=_ACTIVE)
    if refusal.code == "limit_full":
        active = active.filter(naming(refusal.facts["name"]))
    whose = {
        "limit_full": Q(),
        "pool_full": Q(pool=instance.pool),
        "max_active_tasks": Q(dag_run=instance.dag_run_id)
        if conf().max_active_tasks_per == "run"
        else Q(dag_id=instance.dag_id),
        "max_active_tis_per_dag": Q(dag_id=instance.dag_id, task_id=instance.task_id),
        "max_active_tis_per_dagrun": Q(dag_run=instance.dag_run_id, task_id=instance.task_id),
    }.get(refusal.code)
    if whose is None:
        return ""
    rows = active.filter(whose).order_by("queued_when", "id").values_list("dag_id", "task_id", "map_index", "state")
    found = list(rows[: _NAMED + 1])
    names = [_name(instance, *row) for row in found[:_NAMED]]
    return f" It waits for {', '.join(names)}{' and others' if len(found) > _NAMED else ''}." if names else ""


def _name(instance: TaskInstance, dag_id: str, task_id: str, map_index: int, state: str) -> str:
    task = f"{task_id}[{map_index}]" if map_index >= 0 else task_id
    return f"{task if dag_id == instance.dag_id else f'{dag_id}.{task}'} ({state})"


def _place(instance: TaskInstance) -> Verdict:
    """How many scheduled tasks of its pool come before it."""
    before = Q(priority_weight__gt=instance.priority_weight) | Q(
        priority_weight=instance.priority_weight, scheduled_when__lt=instance.scheduled_when
    )
    ahead = TaskInstance.objects.filter(before, state=states.SCHEDULED, pool=instance.pool).count()
    if not ahead:
        return Verdict("place", True, f"It is the next of pool {instance.pool}.", {"ahead": 0, "pool": instance.pool})
    many = "1 task comes" if ahead == 1 else f"{ahead} tasks come"
    text = f"{many} before it in pool {instance.pool}, by priority or by age."
    return Verdict("place", False, text, {"ahead": ahead, "pool": instance.pool})
