"""Which limit keeps a scheduled task from a slot, who holds what it waits for, and how many are before it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, F, FloatField, Q, QuerySet
from django.db.models.functions import Cast, Extract, Floor

from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.engine.admission import Candidate, Refusal, Room, refuse
from scheduler_app.engine.explain import Verdict
from scheduler_app.engine.limits import decode
from scheduler_app.engine.order import urgency
from scheduler_app.engine.wording import counted
from scheduler_app.models import DagRun, Limit, Pool, TaskInstance
from scheduler_app.models.limit import naming

from . import page_why_executor

#: Holders that a sentence names before it says "and n more".
_NAMED: Final = 4
#: Old waiting tasks of a limit among which the one is looked for that takes several units of it.
_WIDE: Final = 100
#: Refusals that no end of another task and no time takes away.
_NOT_BY_WAITING: Final = frozenset({"pool_unknown", "executor_unknown", "limit_unknown", "limit_closed"})
_ACTIVE: Final = [one for one in states.ACTIVE if one]


def limits(
    instance: TaskInstance, run: DagRun, now: datetime, lease: timedelta, visible: QuerySet[TaskInstance] | None
) -> list[Verdict]:
    """Pools and other limits, at the counts of this moment. Five to ten queries, and one for each keyed limit."""
    of_executor = page_why_executor.slots(instance, now, lease)
    room = _room(instance, run, now, of_executor.free)
    wide = _kept_for(instance, room, now)
    if wide is not None:
        room.reserved[instance.pool] = wide.pk
    room.limits_reserved |= _limits_kept_for(instance, room, now)
    refusal = refuse(_candidate(instance, run), room)
    if refusal is None:
        return [Verdict("limits", True, f"No limit is in its way: pool {instance.pool} has room.")]
    if refusal.code == "executor_full":
        text = f"It waits for a free slot of {page_why_executor.name_of(instance)}. {of_executor.text}"
    elif refusal.code == "pool_reserved" and wide is not None:
        text = _kept_text(instance, wide, visible)
    elif refusal.code == "limit_reserved":
        text = f"What is free of limit {refusal.facts['name']} is kept for a task that takes several and waited long."
    else:
        text = refusal.text + _holders(instance, refusal, visible)
    until = {"until": refusal.until.isoformat()} if refusal.until else {}
    verdict = Verdict(refusal.code, False, text, refusal.facts | until)
    alone = refusal.never or refusal.code in _NOT_BY_WAITING
    return [verdict] if alone else [verdict, _place(instance, refusal)]


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


def _room(instance: TaskInstance, run: DagRun, now: datetime, free: int | None) -> Room:
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
        executors={} if free is None else {instance.executor: free},
        pool_used={name: one.occupied for name, one in use.items()},
        runs={run.pk: counts["run"]},
        dags={run.dag_id: counts["dag"]},
        tasks={(run.dag_id, instance.task_id): counts["task"]},
        run_tasks={(run.pk, instance.task_id): counts["run_task"]},
        limits=Limit.objects.allowances(now) if instance.limits else {},
        max_active_tasks_per=conf().max_active_tasks_per,
    )


def _kept_for(instance: TaskInstance, room: Room, now: datetime) -> TaskInstance | None:
    """The task that waited long for several slots of the pool, so that the free ones are kept for it. One query."""
    total = room.pool_slots.get(instance.pool, -1)
    free = total - room.pool_used.get(instance.pool, 0)
    if total < 0 or free < instance.pool_slots:
        return None
    wide = TaskInstance.objects.filter(state=states.SCHEDULED, pool=instance.pool, pool_slots__gt=max(1, free))
    overdue = now - timedelta(seconds=conf().wide_task_wait_seconds)
    rows = wide.filter(pool_slots__lte=total, scheduled_when__lte=overdue).exclude(pk=instance.pk)
    return rows.order_by("-priority_weight", "scheduled_when", "id").first()


def _limits_kept_for(instance: TaskInstance, room: Room, now: datetime) -> dict[str, int]:
    """Keyed limit → the task that waited long for several units of it. One query for each limit of the task."""
    overdue = now - timedelta(seconds=conf().wide_task_wait_seconds)
    kept = {}
    for name, _ in decode(instance.limits):
        limit = room.limits.get(name)
        if limit is None:
            continue
        rows = TaskInstance.objects.filter(naming(name), state=states.SCHEDULED, scheduled_when__lte=overdue)
        rows = rows.exclude(pk=instance.pk).order_by("-priority_weight", "scheduled_when", "id")
        for key, limits in rows.values_list("pk", "limits")[:_WIDE]:
            needs = dict(decode(limits))[name]
            if 1 < needs <= limit.amount and limit.lacks(needs):
                kept[name] = key
                break
    return kept


def _kept_text(instance: TaskInstance, wide: TaskInstance, visible: QuerySet[TaskInstance] | None) -> str:
    """With the name of the task for which the slots are kept, if the reader may see it."""
    if visible is None or not visible.filter(pk=wide.pk).exists():
        many = counted(wide.pool_slots, "slot")
        return f"The free slots of pool {instance.pool} are kept for a task that needs {many} and waited long."
    since = f"{wide.scheduled_when:%Y-%m-%d %H:%M:%S %Z}"
    name = _name(instance, wide.dag_id, wide.task_id, wide.map_index, f"{wide.pool_slots} slots, since {since}")
    return f"The free slots of pool {instance.pool} are kept for {name}, which needs several and waited long."


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


def _place(instance: TaskInstance, refusal: Refusal) -> Verdict:
    """How many scheduled tasks come before it, of those that wait for the same thing."""
    where, scope = _queue(instance, refusal)
    others = TaskInstance.objects.filter(scope, state=states.SCHEDULED).exclude(pk=instance.pk)
    ahead = _before(others, instance, conf().priority_ageing_seconds).count()
    facts = {"ahead": ahead, "pool": instance.pool}
    if not ahead:
        return Verdict("place", True, f"It is the next {where}.", facts)
    many = "1 task comes" if ahead == 1 else f"{ahead} tasks come"
    return Verdict("place", False, f"{many} before it {where}, by priority or by age.", facts)


def _before(others: QuerySet[TaskInstance], mine: TaskInstance, ageing_seconds: float) -> QuerySet[TaskInstance]:
    """Those that come first (``engine.order``, but for the fair share of each DAG)."""
    older = Q(scheduled_when__lt=mine.scheduled_when) | Q(scheduled_when=mine.scheduled_when, pk__lt=mine.pk)
    if not ageing_seconds:
        same = Q(priority_weight=mine.priority_weight)
        return others.filter(Q(priority_weight__gt=mine.priority_weight) | older & same)
    waited = Cast(Extract("scheduled_when", "epoch"), FloatField())
    counted = others.annotate(urgency=F("priority_weight") - Floor(waited / ageing_seconds))
    own = urgency(mine, ageing_seconds)
    return counted.filter(Q(urgency__gt=own) | older & Q(urgency=own))


def _queue(instance: TaskInstance, refusal: Refusal) -> tuple[str, Q]:
    """Who else waits for what a refusal is about: in words, and as a filter."""
    code = refusal.code
    if code == "max_active_tasks" and conf().max_active_tasks_per == "run":
        return "in its run", Q(dag_run=instance.dag_run_id)
    if code == "max_active_tasks":
        return "in its DAG", Q(dag_id=instance.dag_id)
    if code == "max_active_tis_per_dag":
        return "among the instances of its task", Q(dag_id=instance.dag_id, task_id=instance.task_id)
    if code == "max_active_tis_per_dagrun":
        return "among its instances in this run", Q(dag_run=instance.dag_run_id, task_id=instance.task_id)
    if code == "executor_full":
        return f"for {page_why_executor.name_of(instance)}", Q(executor=instance.executor)
    if code in ("limit_full", "limit_reserved", "rate_full"):
        return f"for limit {refusal.facts['name']}", naming(refusal.facts["name"])
    return f"in pool {instance.pool}", Q(pool=instance.pool)
