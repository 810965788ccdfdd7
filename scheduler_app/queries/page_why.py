"""Why is this task not running? The scheduler's own verdicts, in its order, as a ladder of answers.

Readiness comes from ``engine.explain``, limits from ``engine.admission``: the functions by which the loop decides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Case, QuerySet, When

from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.engine.explain import Verdict, explain
from scheduler_app.models import DagRun, Job, TaskInstance, Trigger, facts
from scheduler_app.models.graphs import graphs_of

from . import page_why_executor
from .page_health import scheduler_alive
from .page_why_limits import limits
from .page_why_run import before_start, clock_text, held_text, run_fact

#: The trigger of a task that asks a person.
_ASKING: Final = "HITLTrigger"
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
        states.RUNNING,
    }
)
#: What only follows from something else, says how long, or what happens then: never the headline when there is
#: another reason.
_CONSEQUENCES: Final = frozenset({"run_state", "place", "tasks", "import_error"})


@dataclass(frozen=True, slots=True)
class Why:
    """The ladder, and the refusal that is the reason, which is the headline."""

    verdicts: list[Verdict]

    @property
    def headline(self) -> Verdict | None:
        refusals = [verdict for verdict in self.verdicts if not verdict.ok]
        return next((one for one in refusals if one.code not in _CONSEQUENCES), next(iter(refusals), None))


def why_task(
    instance: TaskInstance, now: datetime, lease: timedelta, visible: QuerySet[TaskInstance] | None = None
) -> Why | None:
    """The ladder of one unfinished task instance (its run and DAG loaded); None for one that ended or is heard to run.

    ``visible`` are the task instances whose names may be told: those that hold what it waits for. At most eleven
    queries, however many task instances there are elsewhere.
    """
    if instance.state not in ASKED:
        return None
    run = instance.dag_run
    if instance.state == states.RUNNING:
        silent = _silent(instance, now)
        return Why([system(now, lease), *silent]) if silent else None
    verdicts = [system(now, lease), *before_start(run, now), *_readiness(instance, run, now)]
    if instance.state == states.SCHEDULED:
        verdicts += limits(instance, run, now, lease, visible)
    elif instance.state == states.QUEUED:
        verdicts += _handed_out(instance, now, lease)
    elif instance.state == states.DEFERRED:
        verdicts += _deferred(instance, now, lease)
    elif instance.state == states.RESTARTING:
        verdicts.append(Verdict("restarting", False, "Its running attempt was told to stop; then it starts again."))
    return Why(verdicts)


def why_run(run: DagRun, now: datetime, lease: timedelta, visible: QuerySet[TaskInstance] | None = None) -> Why | None:
    """The ladder of a run (its DAG loaded) that does not start, or of which nothing runs; None for any other run.

    Where nothing runs, the reason is that of the task that is nearest to running. At most 16 queries.
    """
    if run.state in states.RUN_FINISHED:
        return None
    verdicts = [system(now, lease), *before_start(run, now)]
    why = Why(verdicts)
    if run.state == states.QUEUED:
        return why
    waiting = _waiting(run)
    if waiting is None and why.headline is None:
        return None
    if waiting is None or why.headline is not None:
        return Why([*verdicts, waiting] if waiting else verdicts)
    return Why([*verdicts, *_nearest(run, now, lease, visible), waiting])


def _first_in_order(run: DagRun) -> TaskInstance | None:
    """The task without a state that comes first in the graph: every task before it has ended. Two queries."""
    version = run.dag_version_id
    graph = graphs_of([version]).get(version) if version else None
    rows = TaskInstance.objects.filter(dag_run=run, state__isnull=True)
    known = [
        task_id for task_id in rows.values_list("task_id", flat=True).distinct() if graph and task_id in graph.tasks
    ]
    if graph is None or not known:
        return None
    return rows.filter(task_id=min(known, key=graph.position.__getitem__)).order_by("map_index").first()


def _nearest(run: DagRun, now: datetime, lease: timedelta, visible: QuerySet[TaskInstance] | None) -> list[Verdict]:
    """Why the task does not run that is nearest to running: it waits for a slot, else for a time or a person."""
    order = Case(*(When(state=state, then=place) for place, state in enumerate(_WAITING)), default=len(_WAITING))
    rows = TaskInstance.objects.filter(dag_run=run, state__in=[one for one in _WAITING if one])
    instance = rows.order_by(order, "next_at", "-priority_weight", "id").first() or _first_in_order(run)
    if instance is None:
        return []
    instance.dag_run = run
    why = why_task(instance, now, lease, visible)
    if why is None or why.headline is None:
        return []
    name = f"{instance.task_id}[{instance.map_index}]" if instance.map_index >= 0 else instance.task_id
    return [replace(why.headline, text=f"{name}: {why.headline.text}")]


def system(now: datetime, lease: timedelta) -> Verdict:
    if scheduler_alive(now, lease):
        return Verdict("scheduler", True, "A scheduler is alive.")
    text = "No scheduler is running, so nothing starts. Start one: python manage.py runscheduler"
    return Verdict("scheduler", False, text)


#: How a sentence counts the tasks of a state: one, several.
_WAITING: Final = {
    states.SCHEDULED: ("waits for a slot", "wait for a slot"),
    states.UP_FOR_RETRY: ("waits for its next try", "wait for their next try"),
    states.UP_FOR_RESCHEDULE: ("waits for its next look", "wait for their next look"),
    states.DEFERRED: ("is deferred to the triggerer", "are deferred to the triggerer"),
    states.NONE: ("has not been scheduled", "have not been scheduled"),
}


def _waiting(run: DagRun) -> Verdict | None:
    """What the tasks of a running run wait for; None while one of them runs, or is about to. One query."""
    tally: dict[str | None, int] = {}
    first: datetime | None = None
    rows = TaskInstance.objects.filter(dag_run=run).exclude(state__in=[one for one in states.FINISHED if one])
    for state, next_at in rows.values_list("state", "next_at"):
        tally[state] = tally.get(state, 0) + 1
        if state in (states.UP_FOR_RETRY, states.UP_FOR_RESCHEDULE) and next_at:
            first = min(first or next_at, next_at)
    if not tally or not tally.keys() <= _WAITING.keys():
        return None
    parts = [f"{n} {_WAITING[state][n > 1]}" for state in _WAITING if (n := tally.get(state))]
    until = {"until": first.isoformat()} if first else {}
    return Verdict("tasks", False, f"None of its tasks runs now: {', '.join(parts)}.", {**until, "states": len(tally)})


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
    try:
        found = explain(graph, tis, instance.task_id, instance.map_index, run_fact(run, now), now, previous)
    except KeyError:
        return [Verdict("vanished", False, "The run has no such task instance any more.")]
    return [_of_task(verdict, instance, run) for verdict in found if not _is_said(verdict)]


#: What ``before_start`` has answered already, in the words of people.
_OF_RUN: Final = frozenset({"paused", "run_held", "future"})


def _is_said(verdict: Verdict) -> bool:
    nothing = verdict.code == "state" and verdict.ok and verdict.facts.get("state") not in ("scheduled", "queued")
    return verdict.code in _OF_RUN or nothing


def _of_task(verdict: Verdict, instance: TaskInstance, run: DagRun) -> Verdict:
    """With the names that only the row knows."""
    return replace(verdict, text=held_text(instance, "this task")) if verdict.code == "held" else verdict


def _run_row(run: DagRun) -> facts.RunRow:
    of_run = ("id", "dag_id", "run_id", "run_type", "state", "logical_date", "run_after", "start_date")
    rest = ("next_check_at", "look_failures", "backoff_until", "held_at", "held_until", "cut_short_at")
    values: dict[str, Any] = {name: getattr(run, name) for name in (*of_run, *rest)}
    dag = run.dag
    of_dag = {name: getattr(dag, name) for name in ("is_paused", "is_stale", "latest_version_id", "max_active_tasks")}
    return facts.RunRow(**values, **of_dag, version_id=run.dag_version_id)


def _handed_out(instance: TaskInstance, now: datetime, lease: timedelta) -> list[Verdict]:
    if instance.handed_out_at is None:
        name = page_why_executor.name_of(instance)
        text = f"It has its slots and waits to be handed to {name}"
        if instance.queued_when is None:
            return [Verdict("outbox", False, f"{text}.")]
        waited = (now - instance.queued_when).total_seconds()
        text += f", for {waited:.0f} s now. If that lasts, the scheduler's log says why {name} takes nothing."
        return [Verdict("outbox", False, text, {"seconds": waited})]
    found = Verdict("outbox", True, f"It was handed to its executor at {clock_text(instance.handed_out_at)}.")
    return [found, *page_why_executor.handed_out(instance, now, lease)]


def _silent(instance: TaskInstance, now: datetime) -> list[Verdict]:
    """A running task whose worker has missed several heartbeats; nothing for one that is heard."""
    beat = instance.heartbeat_at or instance.start_date
    timeout = conf().task_heartbeat_timeout_seconds
    if beat is None or (now - beat).total_seconds() < max(3 * conf().task_heartbeat_seconds, timeout / 4):
        return []
    since, until = (now - beat).total_seconds(), beat + timedelta(seconds=timeout)
    where = f" on {instance.hostname}" if instance.hostname else ""
    text = (
        f"Its worker{where} has not been heard for {since:.0f} s. After {timeout:g} s it counts as lost: then its next"
    )
    text += " try starts, or it fails."
    return [Verdict("heartbeat", False, text, {"until": until.isoformat(), "silent_seconds": since})]


def _deferred(instance: TaskInstance, now: datetime, lease: timedelta) -> list[Verdict]:
    alive = Job.objects.alive(now, lease.total_seconds()).filter(job_type="TriggererJob").exists()
    if not alive:
        text = "It is deferred, and no triggerer is running. Start one: python manage.py runtriggerer"
        return [Verdict("triggerer", False, text)]
    trigger = Trigger.objects.filter(pk=instance.trigger_id).values_list("classpath", "triggerer_id").first()
    name = trigger[0].rpartition(".")[2] if trigger else "its trigger"
    if trigger and trigger[1] is None:
        return [Verdict("trigger", False, f"It is deferred to {name}, which no triggerer has taken yet.")]
    if name == _ASKING:
        return [Verdict("question", False, "It asks a question and waits for a person to answer it.")]
    if instance.trigger_timeout is None:
        return [Verdict("trigger", False, f"It is deferred: a triggerer waits for {name}.")]
    text = f"It is deferred: a triggerer waits for {name}, until {clock_text(instance.trigger_timeout)} at most."
    return [Verdict("trigger", False, text, {"until": instance.trigger_timeout.isoformat()})]
