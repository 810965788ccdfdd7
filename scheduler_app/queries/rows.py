"""Rows with all that an API answer shows of them, in a fixed number of statements, whatever the page's length."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from django.db.models import Count, F, OuterRef, QuerySet, Subquery
from django.db.models.functions import Greatest

from scheduler_app.engine import states
from scheduler_app.engine.dag import Task
from scheduler_app.models import (
    Asset,
    AssetEvent,
    DagModel,
    DagRun,
    TaskInstance,
    TaskInstanceHistory,
    Trigger,
    XCom,
)
from scheduler_app.models.graphs import graphs_of
from scheduler_app.models.run import in_states

_VERSION = ("id", "version_number", "dag_id", "bundle_name", "bundle_version", "created_at")


def dags(rows: QuerySet[DagModel]) -> QuerySet[DagModel]:
    """DAGs with their tags: two statements."""
    return rows.prefetch_related("tags")


def with_latest_run(rows: QuerySet[DagModel]) -> QuerySet[DagModel]:
    """Adds ``last_run_state``, ``last_run_start`` and ``last_run_end`` of the newest run, for filters and order."""
    newest = DagRun.objects.filter(dag=OuterRef("pk")).order_by("-run_after", "-id")
    return rows.annotate(
        last_run_state=Subquery(newest.values("state")[:1]),
        last_run_start=Subquery(newest.values("start_date")[:1]),
        last_run_end=Subquery(newest.values("end_date")[:1]),
    )


def timed_runs(rows: QuerySet[DagRun]) -> QuerySet[DagRun]:
    """Adds ``took`` and ``changed_at``, for filters and order."""
    return rows.annotate(
        took=F("end_date") - F("start_date"),
        changed_at=Greatest("queued_at", "start_date", "end_date", "last_scheduling_decision"),
    )


def runs(rows: QuerySet[DagRun]) -> QuerySet[DagRun]:
    """Runs with DAG name and version, ``took`` and ``changed_at``: one statement."""
    fields = [f"dag_version__{name}" for name in _VERSION]
    own = [field.attname for field in DagRun._meta.concrete_fields]
    return timed_runs(rows).select_related("dag", "dag_version").only(*own, "dag__dag_display_name", *fields)


def timed_task_instances(rows: QuerySet[TaskInstance]) -> QuerySet[TaskInstance]:
    """Adds ``took`` and ``changed_at``, for filters and order."""
    return rows.annotate(
        took=F("end_date") - F("start_date"),
        changed_at=Greatest("scheduled_when", "queued_when", "start_date", "end_date"),
    )


def task_instances(rows: QuerySet[TaskInstance]) -> QuerySet[TaskInstance]:
    """Task instances with run, DAG name, version and rendered fields, ``took`` and ``changed_at``: one statement."""
    own = [field.attname for field in TaskInstance._meta.concrete_fields]
    run = [
        f"dag_run__{name}"
        for name in ("run_id", "logical_date", "run_after", "data_interval_start", "data_interval_end")
    ]
    version = [f"dag_version__{name}" for name in _VERSION]
    return (
        timed_task_instances(rows)
        .select_related("dag_run__dag", "dag_version", "rendered_fields")
        .only(*own, *run, "dag_run__dag__dag_display_name", *version, "rendered_fields__fields")
    )


def tries(rows: QuerySet[TaskInstanceHistory]) -> QuerySet[TaskInstanceHistory]:
    own = [field.attname for field in TaskInstanceHistory._meta.concrete_fields]
    version = [f"dag_version__{name}" for name in _VERSION]
    return rows.select_related("dag_run__dag", "dag_version").only(
        *own, "dag_run__run_id", "dag_run__dag__dag_display_name", *version
    )


def xcoms(rows: QuerySet[XCom]) -> QuerySet[XCom]:
    """XComs with their run and DAG name: one statement."""
    return rows.select_related("dag_run__dag")


def triggers(rows: Iterable[TaskInstance]) -> dict[int, Trigger]:
    """The triggers that deferred task instances wait for, by id: one statement, none when nothing is deferred."""
    ids = {row.trigger_id for row in rows if row.trigger_id is not None}
    return Trigger.objects.in_bulk(ids) if ids else {}


class TaskNames:
    """Facts of tasks by (version, task id): the versions that are not cached are read in one statement."""

    def __init__(self, version_ids: Iterable[UUID | None]) -> None:
        self._graphs = graphs_of({version_id for version_id in version_ids if version_id is not None})

    def task(self, version_id: UUID | None, task_id: str) -> Task | None:
        graph = self._graphs.get(version_id) if version_id is not None else None
        return graph.tasks.get(task_id) if graph is not None else None

    def display(self, version_id: UUID | None, task_id: str) -> str:
        task = self.task(version_id, task_id)
        return (task.task_display_name if task else None) or task_id


def assets(rows: QuerySet[Asset]) -> QuerySet[Asset]:
    """Assets of ``access.assets`` with their aliases and newest event: three statements."""
    newest = AssetEvent.objects.filter(asset=OuterRef("pk")).order_by("-timestamp", "-id")
    return rows.annotate(
        last_event_id=Subquery(newest.values("id")[:1]), last_event_at=Subquery(newest.values("timestamp")[:1])
    ).prefetch_related("aliases")


def asset_events(rows: QuerySet[AssetEvent]) -> QuerySet[AssetEvent]:
    """Events of ``access.asset_events`` with their asset: two statements."""
    return rows.select_related("asset")


def run_counts(dags: QuerySet[DagModel]) -> dict[str, dict[str, int]]:
    """DAG id → state → number of runs: two statements.

    Nearly all runs succeeded. They are what is left of each DAG's total, which an index alone gives, without the few
    others: counting 91,000 runs by state read every row, 47 ms.
    """
    runs = DagRun.objects.filter(dag__in=dags) if dags.query.where else DagRun.objects.all()
    found = {
        dag_id: {states.SUCCESS: total}
        for dag_id, total in runs.order_by().values_list("dag_id").annotate(total=Count("*"))
    }
    others = runs.filter(in_states(state for state in states.RUN_STATES if state != states.SUCCESS)).order_by()
    for dag_id, state, number in others.values_list("dag_id", "state").annotate(number=Count("*")):
        counts = found.setdefault(dag_id, {states.SUCCESS: number})  # a DAG's first run may begin between the two
        counts[state] = number
        counts[states.SUCCESS] = max(0, counts[states.SUCCESS] - number)
    return found
