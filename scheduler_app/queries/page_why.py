"""Why is this task not running? The scheduler's own verdicts, in its order, as a ladder of answers.

Readiness comes from ``engine.explain``, limits from ``engine.admission``: the functions by which the loop decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q

from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.engine.admission import Candidate, Room, refuse
from scheduler_app.engine.board import RunFact
from scheduler_app.engine.explain import Verdict, explain
from scheduler_app.models import DagRun, Job, Pool, TaskInstance, facts
from scheduler_app.models.graphs import graphs_of

from .page_health import scheduler_alive

#: States in which somebody asks why.
ASKED = frozenset(
    {
        states.NONE,
        states.SCHEDULED,
        states.QUEUED,
        states.UP_FOR_RETRY,
        states.UP_FOR_RESCHEDULE,
        states.DEFERRED,
        states.RESTARTING,
    }
)


@dataclass(frozen=True, slots=True)
class Why:
    """The ladder, and its first refusal, which is the headline."""

    verdicts: list[Verdict]

    @property
    def headline(self) -> Verdict | None:
        return next((verdict for verdict in self.verdicts if not verdict.ok), None)


def why_task(instance: TaskInstance, now: datetime, lease: timedelta) -> Why | None:
    """The ladder of one unfinished task instance (its run and DAG loaded); None for one that runs or has ended.

    At most nine queries, however many task instances there are elsewhere.
    """
    if instance.state not in ASKED:
        return None
    run = instance.dag_run
    verdicts = [_system(now, lease), *_before_start(run, now), *_readiness(instance, run, now)]
    if instance.state == states.SCHEDULED:
        verdicts += _limits(instance, run)
    elif instance.state == states.QUEUED:
        verdicts += _handed_out(instance, now, lease)
    elif instance.state == states.DEFERRED:
        verdicts.append(_deferred(instance))
    elif instance.state == states.RESTARTING:
        verdicts.append(Verdict("restarting", False, "Its running attempt was told to stop; then it starts again."))
    return Why(verdicts)


def _system(now: datetime, lease: timedelta) -> Verdict:
    if scheduler_alive(now, lease):
        return Verdict("scheduler", True, "A scheduler is alive.")
    return Verdict("scheduler", False, "No scheduler is running: start one with “python manage.py runscheduler”.")


def _before_start(run: DagRun, now: datetime) -> list[Verdict]:
    """What keeps a queued run from starting."""
    found: list[Verdict] = []
    if run.state != states.QUEUED:
        return found
    if run.run_after > now:
        until = {"until": run.run_after.isoformat()}
        found.append(Verdict("run_after", False, f"The run is due at {run.run_after:%Y-%m-%d %H:%M:%S %Z}.", until))
    running = DagRun.objects.filter(dag_id=run.dag_id, state=states.RUNNING).count()
    limit = run.dag.max_active_runs
    text = f"{running} run(s) of the DAG are running; max_active_runs is {limit}."
    found.append(Verdict("max_active_runs", running < limit, text, {"running": running, "limit": limit}))
    return found


def _readiness(instance: TaskInstance, run: DagRun, now: datetime) -> list[Verdict]:
    version = instance.dag_version_id or run.dag_version_id
    graph = graphs_of([version]).get(version) if version else None
    if graph is None:
        return [Verdict("version", False, "The DAG version of this run is not stored: parse the DAG file again.")]
    tis = facts.task_facts([run.pk], {}, now).tis[run.pk]
    task = graph.tasks.get(instance.task_id)
    previous = None
    if task is not None and (task.depends_on_past or task.wait_for_downstream):
        row = _run_row(run)
        previous = facts.previous_facts([row], {version: graph}, {run.pk: version}).get(run.pk)
    fact = RunFact(
        logical_date=run.logical_date,
        state=run.state,
        is_paused=run.dag.is_paused,
        held=run.held_at is not None and (run.held_until is None or run.held_until > now),
    )
    try:
        return explain(graph, tis, instance.task_id, instance.map_index, fact, now, previous)
    except KeyError:
        return [Verdict("vanished", False, "The run has no such task instance any more.")]


def _run_row(run: DagRun) -> facts.RunRow:
    of_run = ("id", "dag_id", "run_id", "run_type", "state", "logical_date", "run_after", "start_date")
    rest = ("next_check_at", "look_failures", "backoff_until", "held_at", "held_until")
    values: dict[str, Any] = {name: getattr(run, name) for name in (*of_run, *rest)}
    dag = run.dag
    of_dag = {"is_paused": dag.is_paused, "is_stale": dag.is_stale, "latest_version_id": dag.latest_version_id}
    return facts.RunRow(**values, **of_dag, version_id=run.dag_version_id)


def _limits(instance: TaskInstance, run: DagRun) -> list[Verdict]:
    """Pools and other limits, at the counts of this moment."""
    use = Pool.objects.use()
    active = TaskInstance.objects.filter(dag_id=run.dag_id, state__in=[one for one in states.ACTIVE if one])
    counts = active.aggregate(
        run=Count("id", filter=Q(dag_run=run)),
        dag=Count("id"),
        task=Count("id", filter=Q(task_id=instance.task_id)),
        run_task=Count("id", filter=Q(dag_run=run, task_id=instance.task_id)),
    )
    candidate = Candidate(
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
    )
    room = Room(
        pool_slots={name: one.slots for name, one in use.items()},
        executors={instance.executor: 1},
        pool_used={name: one.occupied for name, one in use.items()},
        runs={run.pk: counts["run"]},
        dags={run.dag_id: counts["dag"]},
        tasks={(run.dag_id, instance.task_id): counts["task"]},
        run_tasks={(run.pk, instance.task_id): counts["run_task"]},
        max_active_tasks_per=conf().max_active_tasks_per,
    )
    refusal = refuse(candidate, room)
    if refusal is not None:
        return [Verdict(refusal.code, False, refusal.text, refusal.facts), _place(instance)]
    return [Verdict("limits", True, f"No limit is in its way: pool {instance.pool} has room."), _place(instance)]


def _place(instance: TaskInstance) -> Verdict:
    """How many scheduled tasks of its pool come before it."""
    before = Q(priority_weight__gt=instance.priority_weight) | Q(
        priority_weight=instance.priority_weight, scheduled_when__lt=instance.scheduled_when
    )
    ahead = TaskInstance.objects.filter(before, state=states.SCHEDULED, pool=instance.pool).count()
    text = (
        f"{ahead} task(s) of pool {instance.pool} are before it in the queue."
        if ahead
        else "It is the next of its pool."
    )
    return Verdict("place", ahead == 0, text, {"ahead": ahead, "pool": instance.pool})


def _handed_out(instance: TaskInstance, now: datetime, lease: timedelta) -> list[Verdict]:
    if instance.handed_out_at is None:
        return [Verdict("outbox", False, "It has a slot and waits to be handed to its executor.")]
    found = [Verdict("outbox", True, f"It was handed to its executor at {instance.handed_out_at:%H:%M:%S %Z}.")]
    workers = Job.objects.alive(now, lease.total_seconds()).exclude(job_type__in=("DagProcessorJob", "TriggererJob"))
    alive = workers.count()
    text = f"{alive} process(es) that may start it are alive." if alive else "No process that could start it is alive."
    return [*found, Verdict("workers", alive > 0, text, {"alive": alive}), _starting(instance, now)]


def _starting(instance: TaskInstance, now: datetime) -> Verdict:
    waited = (now - instance.handed_out_at).total_seconds() if instance.handed_out_at else 0.0
    return Verdict("start", False, f"It waits for its process to start, for {waited:.0f} s now.", {"seconds": waited})


def _deferred(instance: TaskInstance) -> Verdict:
    until = f", at most until {instance.trigger_timeout:%Y-%m-%d %H:%M:%S %Z}" if instance.trigger_timeout else ""
    return Verdict("trigger", False, f"It is deferred: a triggerer waits for its trigger{until}.")
