"""Task instances: lists, one, mapped ones, tries, clear, patch."""

from __future__ import annotations

from typing import Any

from django.db.models import Q
from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.actions import clear, mark, notes, selection, task_instances
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance
from scheduler_app.queries import rows as queries

from .. import bodies, errors, params
from ..endpoint import Endpoint, null
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
    *params.matching("dag_id", "dag_id"),
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
        raise errors.Problem(404, _missing(dag_id, run_id, task_id, map_index))
    return row


def _missing(dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
    return (
        f"The Task Instance with dag_id: `{dag_id}`, run_id: `{run_id}`, task_id: `{task_id}` and map_index:"
        f" `{map_index}` was not found"
    )


def _in_run(actor: Actor, dag_id: str, run_id: str) -> Any:
    """The rows below a path whose DAG and run may each be ``~``; 404 for one that is not there."""
    rows = queries.task_instances(access.task_instances(actor))
    if dag_id != "~" and run_id != "~":
        return rows.filter(dag_run_id=visible_run(actor, dag_id, run_id).pk)
    if dag_id != "~":
        return rows.filter(dag_id=visible(actor, dag_id).dag_id)
    return rows if run_id == "~" else rows.filter(dag_run__run_id=run_id)


def _tasks_of_group(actor: Actor, dag_id: str, group_id: str) -> Q:
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
        rows = params.narrow(_in_run(self.actor, dag_id, dag_run_id), FILTERS, query)
        if (group := query.get("task_group_id")) is not None:
            rows = rows.filter(_tasks_of_group(self.actor, dag_id, group))
        return listing("task_instances", rows, query, ORDER, ["map_index"], documents.task_instances)


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
        rows = params.narrow(queries.task_instances(access.task_instances(self.actor)), BATCH_FILTERS, query)
        return listing("task_instances", rows, query, ORDER, ["id"], documents.task_instances)


class PatchBody(bodies.Body):
    new_state = bodies.Text(required=False, allow_null=True)
    note = bodies.Text(required=False, allow_null=True, max_length=bodies.NOTE)
    include_upstream = bodies.Flag(default=False)
    include_downstream = bodies.Flag(default=False)
    include_future = bodies.Flag(default=False)
    include_past = bodies.Flag(default=False)

    def validate_new_state(self, value: str | None) -> str | None:
        if value is not None and value.lower() not in mark.VERBS:
            raise serializers.ValidationError(f"'{value}' is not one of {', '.join(mark.VERBS)}", code="value_error")
        return value.lower() if value else None


def _wanted(dag_id: str, run_id: str, tasks: list[Any], body: dict[str, Any]) -> selection.Wanted:
    return selection.Wanted(
        dag_id,
        tasks=tasks,
        runs=[run_id],
        upstream=body["include_upstream"],
        downstream=body["include_downstream"],
        future=body["include_future"],
        past=body["include_past"],
    )


def _read_patch(request: Request) -> dict[str, Any]:
    body = bodies.read(request, PatchBody)
    flags = {name: body[name] for name in body if name.startswith("include_")}
    rest = bodies.masked({k: v for k, v in body.items() if k not in flags}, request, {"new_state", "note", *flags})
    if not rest.keys() & {"new_state", "note"}:
        raise errors.not_valid("value_error", ["body"], "Give new_state or note")
    return rest | flags


def _answer(rows: list[TaskInstance]) -> Response:
    keys = [row.pk for row in rows]
    full = list(
        queries.task_instances(TaskInstance.objects.filter(pk__in=keys)).order_by("dag_run_id", "task_id", "map_index")
    )
    return Response({"task_instances": documents.task_instances(full), "total_entries": len(full)})


class _OneTask(Endpoint):
    """The part of a path that names a task of a run, perhaps with a map index (in the path or the query)."""

    kind = "task"

    def picked(self, request: Request, dag_id: str, run_id: str, task_id: str, map_index: str | None) -> list[Any]:
        """The task, or one instance of it; 404 when there is none."""
        raw = map_index if map_index is not None else request.query_params.get("map_index")
        index = params.in_path(raw, "map_index") if raw is not None else None
        rows = access.task_instances(self.actor).filter(dag_run__dag_id=dag_id, dag_run__run_id=run_id, task_id=task_id)
        if not (rows if index is None else rows.filter(map_index=index)).exists():
            raise errors.Problem(404, _missing(dag_id, run_id, task_id, -1 if index is None else index))
        return [task_id] if index is None else [(task_id, index)]

    def preview(self, wanted: selection.Wanted, body: dict[str, Any]) -> Response:
        if body.get("new_state"):
            return _answer(mark.would_change(self.actor, wanted, body["new_state"]))
        return _answer(list(selection.chosen(self.actor, wanted)))

    def act(self, wanted: selection.Wanted, body: dict[str, Any]) -> Response:
        rows: list[TaskInstance] = []
        if body.get("new_state"):
            rows = mark.mark(self.actor, wanted, body["new_state"], self.now)
        if "note" in body:
            noted = notes.note_tasks(self.actor, wanted, body["note"], self.now)
            rows = rows or noted
        return _answer(rows)


class TaskInstanceView(_OneTask):
    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        found = access.task_instances(self.actor).filter(
            dag_run__dag_id=dag_id, dag_run__run_id=dag_run_id, task_id=task_id
        )
        rows = list(queries.task_instances(found).order_by("map_index")[:2])
        if rows and rows[0].map_index >= 0:
            raise errors.Problem(404, "Task instance is mapped, add the map_index value to the URL")
        if not rows:
            raise errors.Problem(404, _missing(dag_id, dag_run_id, task_id, -1))
        return Response(documents.task_instances(rows[:1])[0])

    def patch(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        body = _read_patch(request)
        tasks = self.picked(request, dag_id, dag_run_id, task_id, None)
        return self.act(_wanted(dag_id, dag_run_id, tasks, body), body)

    def delete(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> HttpResponse:
        index = params.get(request.query_params, "map_index", params.whole, -1)
        wanted = selection.Wanted(dag_id, tasks=[(task_id, index)], runs=[dag_run_id])
        visible_task(self.actor, dag_id, dag_run_id, task_id, index)
        task_instances.delete(self.actor, wanted, self.now)
        return null()


class MappedTaskInstanceView(_OneTask):
    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, map_index: str) -> Response:
        index = params.in_path(map_index, "map_index")
        return Response(documents.task_instances([visible_task(self.actor, dag_id, dag_run_id, task_id, index)])[0])

    def patch(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, map_index: str) -> Response:
        body = _read_patch(request)
        tasks = self.picked(request, dag_id, dag_run_id, task_id, map_index)
        return self.act(_wanted(dag_id, dag_run_id, tasks, body), body)


class PatchDryRunView(_OneTask):
    def patch(
        self, request: Request, dag_id: str, dag_run_id: str, task_id: str, map_index: str | None = None
    ) -> Response:
        body = _read_patch(request)
        tasks = self.picked(request, dag_id, dag_run_id, task_id, map_index)
        return self.preview(_wanted(dag_id, dag_run_id, tasks, body), body)


class GroupPatchView(_OneTask):
    """The same for all tasks of a group; ``dry`` only looks."""

    dry = False

    def patch(self, request: Request, dag_id: str, dag_run_id: str, group_id: str) -> Response:
        body = _read_patch(request)
        visible_run(self.actor, dag_id, dag_run_id)
        scope = _tasks_of_group(self.actor, dag_id, group_id)
        tasks = sorted(dict(scope.children)["task_id__in"])  # type: ignore[arg-type]
        wanted = _wanted(dag_id, dag_run_id, tasks, body)
        return self.preview(wanted, body) if self.dry else self.act(wanted, body)


class MappedListView(Endpoint):
    kind = "task"

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        run = visible_run(self.actor, dag_id, dag_run_id)
        rows = queries.task_instances(access.task_instances(self.actor)).filter(dag_run=run, task_id=task_id)
        if not rows.exists():
            raise errors.Problem(404, f"Task id {task_id} not found")
        rows = params.narrow(rows.filter(map_index__gte=0), MAPPED_FILTERS, request.query_params)
        return listing("task_instances", rows, request.query_params, ORDER, ["map_index"], documents.task_instances)


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
        raise errors.Problem(404, f"{_missing(dag_id, dag_run_id, task_id, live.map_index)} with try_number `{number}`")


class TaskIds(serializers.Field[Any, Any, Any, Any]):
    """A list of task ids and [task id, map index] pairs."""

    default_error_messages = {"shape": "Input should be a list of task ids and [task id, map index] pairs"}

    def to_internal_value(self, data: Any) -> list[str | tuple[str, int]]:
        if not isinstance(data, list):
            self.fail("shape")
        return [self._one(item) for item in data]

    def _one(self, item: Any) -> str | tuple[str, int]:
        if isinstance(item, str):
            return item
        if (
            isinstance(item, list)
            and len(item) == 2
            and isinstance(item[0], str)
            and isinstance(item[1], int)
            and -1 <= item[1] < 2**31
        ):
            return item[0], item[1]
        return self.fail("shape")

    def to_representation(self, value: Any) -> Any:
        return value


class ClearBody(bodies.Body):
    dry_run = bodies.Flag(default=True)
    start_date = bodies.Moment(required=False, allow_null=True)
    end_date = bodies.Moment(required=False, allow_null=True)
    only_failed = bodies.Flag(default=True)
    only_running = bodies.Flag(default=False)
    reset_dag_runs = bodies.Flag(default=True)
    task_ids = TaskIds(required=False, allow_null=True)
    dag_run_id = bodies.Text(required=False, allow_null=True)
    include_upstream = bodies.Flag(default=False)
    include_downstream = bodies.Flag(default=False)
    include_future = bodies.Flag(default=False)
    include_past = bodies.Flag(default=False)
    run_on_latest_version = bodies.Flag(required=False, allow_null=True)
    prevent_running_task = bodies.Flag(default=False)
    note = bodies.Text(required=False, allow_null=True, max_length=bodies.NOTE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["only_failed"] and attrs["only_running"]:
            raise serializers.ValidationError("only_failed and only_running both are set to True", code="value_error")
        if (attrs.get("start_date") or attrs.get("end_date")) and attrs.get("dag_run_id"):
            raise serializers.ValidationError(
                "Exactly one of dag_run_id or (start_date, end_date) must be provided", code="value_error"
            )
        start, end = attrs.get("start_date"), attrs.get("end_date")
        if start and end and start > end:
            raise serializers.ValidationError("end_date is sooner than start_date", code="value_error")
        return attrs


class ClearView(Endpoint):
    kind = "task"
    needs = {"POST": ("change", "task")}

    def post(self, request: Request, dag_id: str) -> Response:
        body = bodies.read(request, ClearBody)
        run_id = body.get("dag_run_id")
        wanted = selection.Wanted(
            dag_id,
            tasks=body.get("task_ids"),
            runs=[run_id] if run_id is not None else None,
            upstream=body["include_upstream"],
            downstream=body["include_downstream"],
            future=body["include_future"],
            past=body["include_past"],
            only_failed=body["only_failed"],
            only_running=body["only_running"],
            start_date=body.get("start_date"),
            end_date=body.get("end_date"),
        )
        if body["dry_run"]:
            return _answer(list(selection.chosen(self.actor, wanted)))
        done = clear.clear(
            self.actor,
            wanted,
            self.now,
            reset_runs=body["reset_dag_runs"],
            refuse_running=body["prevent_running_task"],
            latest_version=bool(body.get("run_on_latest_version")),
            note=body.get("note"),
        )
        return _answer(done.task_instances)
