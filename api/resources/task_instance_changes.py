"""One task instance or some: read, patch (with dry run), clear, delete."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.actions import clear, mark, notes, selection, task_instances
from scheduler_app.models import TaskInstance
from scheduler_app.queries import rows as queries

from .. import bodies, errors, params
from ..endpoint import Endpoint, null
from . import documents
from .runs import visible_run
from .task_instances import missing, tasks_of_group, visible_task


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
    return rest | flags


def _answer(rows: list[TaskInstance]) -> Response:
    return Response(documents.task_instances_of(rows))


def named(rows: list[TaskInstance], wanted: selection.Wanted) -> list[TaskInstance]:
    """Those of the task and the run that the path names: what else changed with them Airflow does not tell either."""
    picked = {(task, None) if isinstance(task, str) else task for task in wanted.tasks or ()}
    return [
        row
        for row in rows
        if row.dag_run.run_id in (wanted.runs or ()) and {(row.task_id, None), (row.task_id, row.map_index)} & picked
    ]


class _OneTask(Endpoint):
    """The part of a path that names a task of a run, perhaps with a map index (in the path or the query)."""

    kind = "task"

    def picked(self, request: Request, dag_id: str, run_id: str, task_id: str, map_index: str | None) -> list[Any]:
        """The task, or one instance of it; 404 when there is none."""
        raw = map_index if map_index is not None else request.query_params.get("map_index")
        index = params.in_path(raw, "map_index") if raw is not None else None
        rows = access.task_instances(self.actor).filter(dag_run__dag_id=dag_id, dag_run__run_id=run_id, task_id=task_id)
        if not (rows if index is None else rows.filter(map_index=index)).exists():
            raise errors.Problem(404, missing(dag_id, run_id, task_id, -1 if index is None else index))
        return [task_id] if index is None else [(task_id, index)]

    def preview(self, wanted: selection.Wanted, body: dict[str, Any]) -> Response:
        if body.get("new_state"):
            return _answer(mark.would_change(self.actor, wanted, body["new_state"]))
        return _answer(selection.picked(self.actor, wanted))

    def act(self, wanted: selection.Wanted, body: dict[str, Any]) -> Response:
        rows = selection.picked(self.actor, wanted) if not body.keys() & {"new_state", "note"} else []
        if body.get("new_state"):
            rows = mark.mark(self.actor, wanted, body["new_state"], self.now)
        if "note" in body:
            noted = notes.note_tasks(self.actor, wanted, body["note"], self.now)
            rows = rows or noted
        return _answer(named(rows, wanted))


class TaskInstanceView(_OneTask):
    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        found = access.task_instances(self.actor).filter(
            dag_run__dag_id=dag_id, dag_run__run_id=dag_run_id, task_id=task_id
        )
        rows = list(queries.task_instances(found).order_by("map_index")[:2])
        if rows and rows[0].map_index >= 0:
            raise errors.Problem(404, "Task instance is mapped, add the map_index value to the URL")
        if not rows:
            raise errors.Problem(404, missing(dag_id, dag_run_id, task_id, -1))
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
        scope = tasks_of_group(self.actor, dag_id, group_id)
        tasks = sorted(dict(scope.children)["task_id__in"])  # type: ignore[arg-type]
        wanted = _wanted(dag_id, dag_run_id, tasks, body)
        return self.preview(wanted, body) if self.dry else self.act(wanted, body)


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
            return _answer(selection.picked(self.actor, wanted))
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
