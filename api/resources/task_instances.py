"""Task instances: lists, mapped ones, tries."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.actions import selection
from scheduler_app.engine import states
from scheduler_app.models import DagRun, TaskInstance
from scheduler_app.models.graphs import graph_of
from scheduler_app.queries import merged
from scheduler_app.queries import rows as queries

from .. import bodies, errors, params
from ..endpoint import Endpoint
from . import documents
from .dags import visible
from .runs import as_query, batch_fields, listing, visible_run

_RANGES = (
    *params.bounds("run_after", "dag_run__run_after"),
    *params.bounds("logical_date", "dag_run__logical_date"),
    *params.bounds("start_date"),
    *params.bounds("end_date"),
    *params.duration_bounds(),
)
_STATES = (*states.TASK_STATES, "awaiting_input")
MAPPED_FILTERS = (
    *_RANGES,
    *params.bounds("updated_at", "changed_at"),
    params.state_in("state", _STATES),
    params.any_of("pool"),
    *params.matching("pool_name", "pool"),
    params.any_of("queue"),
    *params.matching("queue_name", "queue"),
    params.any_of("executor"),
    params.any_of("version_number", "dag_version__version_number", params.whole),
    params.any_of("try_number", read=params.whole),
    params.any_of("operator", "operator_name"),
    *params.matching("operator_name", "operator_name"),
    params.any_of("map_index", read=params.whole),
    *params.matching("rendered_map_index", "rendered_map_index"),
)
FILTERS = (
    *MAPPED_FILTERS,
    params.exact("task_id"),
    # a display name is no column; it is the task's id unless its author gave another
    *params.matching("task_display_name", "task_id"),
    *params.of_dags("dag_id", "dag_run__dag"),
    *params.matching("run_id", "dag_run__run_id"),
)
BATCH_FILTERS = (
    *_RANGES,
    params.any_of("dag_ids", "dag_id"),
    params.any_of("dag_run_ids", "dag_run__run_id"),
    params.any_of("task_ids", "task_id"),
    params.state_in("state", _STATES),
    params.any_of("pool"),
    params.any_of("queue"),
    params.any_of("executor"),
)
ORDER = {
    "id": "pk",
    "state": "state",
    "duration": "took",
    "start_date": "start_date",
    "end_date": "end_date",
    "map_index": "map_index",
    "try_number": "try_number",
    "logical_date": "dag_run__logical_date",
    "run_after": "dag_run__run_after",
    "data_interval_start": "dag_run__data_interval_start",
    "data_interval_end": "dag_run__data_interval_end",
    "rendered_map_index": "rendered_map_index",
    "operator": "operator_name",
}


def visible_task(actor: Actor, dag_id: str, run_id: str, task_id: str, map_index: int = -1) -> TaskInstance:
    """A task instance that the actor may see; 404 otherwise."""
    rows = queries.task_instances(access.task_instances(actor))
    row = rows.filter(dag_run__dag_id=dag_id, dag_run__run_id=run_id, task_id=task_id, map_index=map_index).first()
    if row is None:
        raise errors.Problem(404, missing(dag_id, run_id, task_id, map_index))
    return row


def missing(dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
    return (
        f"The Task Instance with dag_id: `{dag_id}`, run_id: `{run_id}`, task_id: `{task_id}` and map_index:"
        f" `{map_index}` was not found"
    )


def in_run(actor: Actor, dag_id: str, run_id: str) -> Any:
    """The rows below a path whose DAG and run may each be ``~``; 404 for one that is not there."""
    rows = queries.timed_task_instances(access.task_instances(actor))
    if dag_id != "~" and run_id != "~":
        return rows.filter(dag_run_id=visible_run(actor, dag_id, run_id).pk)
    if dag_id != "~":
        return rows.filter(dag_run__dag_id=visible(actor, dag_id).dag_id)
    return rows if run_id == "~" else rows.filter(dag_run__run_id=run_id)


def tasks_of_group(actor: Actor, dag_id: str, group_id: str) -> Q:
    if dag_id == "~":
        raise errors.not_valid("value_error", ["query", "task_group_id"], "A task group belongs to a DAG: name one")
    graph = selection.graph_for(visible(actor, dag_id))
    if graph is None or group_id not in graph.groups:
        raise errors.Problem(404, f"Task group `{group_id}` was not found in the DAG `{dag_id}`")
    inside, todo = set(), [group_id]
    while todo:
        for child in graph.groups[todo.pop()].children:
            if "task" in child:
                inside.add(child["task"])
            else:
                todo.append(child["group"])
    return Q(task_id__in=inside)


class TaskInstancesView(Endpoint):
    kind = "task"

    def get(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        query = request.query_params
        rows = params.narrow(in_run(self.actor, dag_id, dag_run_id), FILTERS, query)
        if (group := query.get("task_group_id")) is not None:
            rows = rows.filter(tasks_of_group(self.actor, dag_id, group))
        return listing(
            "task_instances",
            rows,
            query,
            ORDER,
            ["map_index"],
            queries.task_instances,
            documents.task_instances,
            merged.TASK_INSTANCES if dag_id == dag_run_id == "~" else None,
        )


class BatchBody(bodies.Body):
    page_offset = serializers.IntegerField(default=0, min_value=0, max_value=2**31 - 1)
    page_limit = serializers.IntegerField(default=100, min_value=0, max_value=2**31 - 1)
    order_by = bodies.Text(required=False, allow_null=True)
    dag_ids = serializers.ListField(child=bodies.Text(), required=False, allow_null=True)
    dag_run_ids = serializers.ListField(child=bodies.Text(), required=False, allow_null=True)
    task_ids = serializers.ListField(child=bodies.Text(), required=False, allow_null=True)
    state = serializers.ListField(child=bodies.Text(allow_null=True), required=False, allow_null=True)
    pool = serializers.ListField(child=bodies.Text(), required=False, allow_null=True)
    queue = serializers.ListField(child=bodies.Text(), required=False, allow_null=True)
    executor = serializers.ListField(child=bodies.Text(), required=False, allow_null=True)

    def get_fields(self) -> dict[str, Any]:
        given = super().get_fields()
        return given | batch_fields(BATCH_FILTERS, given)


class TaskInstancesBatchView(Endpoint):
    kind = "task"
    needs = {"POST": ("view", "task")}

    def post(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        for name, value in (("dag_id", dag_id), ("dag_run_id", dag_run_id)):
            if value != "~":
                raise errors.not_valid("literal_error", ["path", name], "Input should be '~'", value)
        query = as_query(bodies.read(request, BatchBody))
        rows = params.narrow(queries.timed_task_instances(access.task_instances(self.actor)), BATCH_FILTERS, query)
        parts = None if query.getlist("dag_run_ids") else merged.TASK_INSTANCES
        return listing(
            "task_instances", rows, query, ORDER, ["id"], queries.task_instances, documents.task_instances, parts
        )


class MappedListView(Endpoint):
    kind = "task"

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        run = visible_run(self.actor, dag_id, dag_run_id)
        rows = queries.timed_task_instances(access.task_instances(self.actor)).filter(dag_run=run, task_id=task_id)
        rows = rows.filter(map_index__gte=0)
        if not rows.exists():
            _need_mapped(run, task_id)
        rows = params.narrow(rows, MAPPED_FILTERS, request.query_params)
        return listing(
            "task_instances",
            rows,
            request.query_params,
            ORDER,
            ["map_index"],
            queries.task_instances,
            documents.task_instances,
        )


def _need_mapped(run: DagRun, task_id: str) -> None:
    """404 unless the run's version maps the task: one that is not expanded yet, or over nothing, has an empty list."""
    graph = graph_of(run.dag_version_id) if run.dag_version_id is not None else None
    if graph is None or task_id not in graph.tasks:
        raise errors.Problem(404, f"Task id {task_id} not found")
    if task_id not in graph.mapped_tasks:
        raise errors.Problem(404, f"Task id {task_id} is not mapped")


class TriesView(Endpoint):
    """Every try of a task instance, the ended ones and the present one; or one of them."""

    kind = "task"

    def get(
        self,
        request: Request,
        dag_id: str,
        dag_run_id: str,
        task_id: str,
        map_index: str | None = None,
        task_try_number: str | None = None,
    ) -> Response:
        raw = map_index if map_index is not None else request.query_params.get("map_index", "-1")
        live = visible_task(self.actor, dag_id, dag_run_id, task_id, params.in_path(raw, "map_index"))
        past = list(queries.tries(access.history(self.actor).filter(task_instance=live)).order_by("try_number", "id"))
        # Between two tries the row still shows the one that ended last, which the history has.
        shown = {row.try_number for row in past}
        rows = [*past, *([live] if live.try_number not in shown else [])]
        if task_try_number is None:
            found = documents.tries(rows)
            return Response({"task_instances": found, "total_entries": len(found)})
        number = params.in_path(task_try_number, "task_try_number")
        for row in rows:
            if row.try_number == number:
                return Response(documents.tries([row])[0])
        raise errors.Problem(404, f"{missing(dag_id, dag_run_id, task_id, live.map_index)} with try_number `{number}`")
