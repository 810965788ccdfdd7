"""Which task instances an action is about: the preview and the act ask the same function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q, QuerySet

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.engine.graph import Graph
from scheduler_app.models import DagModel, DagRun, TaskInstance

from . import definitions
from .errors import Missing, Refused


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person picked. ``tasks``: ids, or (id, map index); None is all. ``runs``: run ids; None is all."""

    dag_id: str
    tasks: Sequence[str | tuple[str, int]] | None = None
    runs: Sequence[str] | None = None
    upstream: bool = False
    downstream: bool = False
    past: bool = False
    future: bool = False
    only_failed: bool = False
    only_running: bool = False
    start_date: datetime | None = None
    end_date: datetime | None = None


def chosen(actor: Actor, wanted: Wanted) -> QuerySet[TaskInstance]:
    """The task instances, in a stable order. Raises Missing for an unknown DAG, run or task, Refused for a bad mix."""
    dag = access.dags(actor).filter(pk=wanted.dag_id).first()
    if dag is None:
        raise Missing(f"The DAG with ID: `{wanted.dag_id}` was not found")
    rows = TaskInstance.objects.filter(dag_run__in=_runs(wanted)).filter(_tasks(dag, wanted))
    if wanted.only_failed or wanted.only_running:
        some: list[str] = []
        some += [states.FAILED, states.UPSTREAM_FAILED] if wanted.only_failed else []
        some += [states.RUNNING] if wanted.only_running else []
        rows = rows.filter(state__in=some)
    return rows.order_by("dag_run_id", "task_id", "map_index")


def picked(actor: Actor, wanted: Wanted, *related: str) -> list[TaskInstance]:
    """As :func:`chosen`, as a list. Raises Refused where they are more than one action may be about."""
    most = conf().action_task_instances
    found = chosen(actor, wanted)
    rows = list((found.select_related(*related) if related else found)[: most + 1])
    if len(rows) > most:
        raise Refused(
            f"These are more than {most} task instances, the most for one action (setting action_task_instances)."
            " Name fewer runs or tasks, a range of dates, or only the failed ones."
        )
    return rows


def graph_for(dag: DagModel) -> Graph | None:
    """The graph of the DAG's newest version, None when no version was stored yet."""
    return definitions.needed(dag.latest_version_id) if dag.latest_version_id else None


def _runs(wanted: Wanted) -> QuerySet[DagRun]:
    runs = DagRun.objects.filter(dag_id=wanted.dag_id)
    if wanted.start_date is not None:
        runs = runs.filter(logical_date__gte=wanted.start_date)
    if wanted.end_date is not None:
        runs = runs.filter(logical_date__lte=wanted.end_date)
    if wanted.runs is None:
        if wanted.past or wanted.future:
            raise Refused("Past and future are counted from a run: give dag_run_id.")
        return runs.order_by()
    named = list(DagRun.objects.filter(dag_id=wanted.dag_id, run_id__in=wanted.runs))
    if missing := set(wanted.runs) - {run.run_id for run in named}:
        raise Missing(f"The DagRun with dag_id: `{wanted.dag_id}` and run_id: `{min(missing)}` was not found")
    scope = Q(pk__in=[run.pk for run in named])
    if wanted.past or wanted.future:
        # Runs without a logical date are ordered by when they could start.
        for run in named:
            field = "logical_date" if run.logical_date is not None else "run_after"
            at = getattr(run, field)
            scope |= Q(**{f"{field}__lt": at}) if wanted.past else Q()
            scope |= Q(**{f"{field}__gt": at}) if wanted.future else Q()
    return runs.filter(scope).order_by()


def _tasks(dag: DagModel, wanted: Wanted) -> Q:
    if wanted.tasks is None:
        return Q()
    whole = {task for task in wanted.tasks if isinstance(task, str)}
    single = {task for task in wanted.tasks if not isinstance(task, str)}
    scope = Q(task_id__in=whole)
    for task_id, map_index in single:
        scope |= Q(task_id=task_id, map_index=map_index)
    ids = whole | {task_id for task_id, _ in single}
    _check_known(dag, ids)
    if wanted.upstream or wanted.downstream:
        scope |= Q(task_id__in=_relatives(dag, ids, wanted) - ids)
    return scope


def _relatives(dag: DagModel, ids: Iterable[str], wanted: Wanted) -> frozenset[str]:
    graph = graph_for(dag)
    if graph is None:
        return frozenset()
    known = [task_id for task_id in ids if task_id in graph.tasks]
    return graph.relatives(known, upstream=wanted.upstream, downstream=wanted.downstream)


def _check_known(dag: DagModel, ids: set[str]) -> None:
    """A task must be in the newest version, or have left task instances behind."""
    graph = definitions.known(dag.latest_version_id)
    unknown = ids - set(graph.tasks if graph else ())
    if unknown:
        rows = TaskInstance.objects.filter(dag_run__dag_id=dag.dag_id, task_id__in=unknown)
        unknown -= set(rows.values_list("task_id", flat=True).distinct())
    if unknown:
        raise Missing(f"Task(s) {', '.join(sorted(unknown))} not found in the DAG `{dag.dag_id}`")
