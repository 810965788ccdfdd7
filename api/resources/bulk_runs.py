"""Many runs or task instances of a DAG at once: patch, delete, clear."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.actions import mark, notes, partitions, selection, task_instances
from scheduler_app.actions import runs as run_actions
from scheduler_app.models import db
from scheduler_app.queries import rows as queries

from .. import bodies, bulk, errors
from ..endpoint import Endpoint
from . import documents
from .dags import visible
from .runs import RunsView
from .task_instance_changes import PatchBody
from .task_instances import TaskInstancesView


class RunEntity(bodies.Body):
    dag_run_id = bodies.Text()
    dag_id = bodies.Text(required=False, allow_null=True)
    state = serializers.ChoiceField(["queued", "success", "failed"], required=False, allow_null=True)
    note = bodies.Text(required=False, allow_null=True, max_length=bodies.NOTE)


def _dag_of(entity: dict[str, Any], path: str) -> str:
    """The DAG of an entity: its own, else the path's. 422 when neither names one."""
    dag_id = entity.get("dag_id") or path
    if dag_id == "~":
        raise errors.not_valid("missing", ["body", "dag_id"], "dag_id is required where the path has ~")
    if path not in ("~", dag_id):
        raise errors.not_valid("value_error", ["body", "dag_id"], f"It differs from the path's {path}", dag_id)
    return dag_id


def _change_runs(actor: Actor, path: str, entities: list[dict[str, Any]], now: datetime) -> None:
    """Runs that get the same state together; a run that is named again gets its next change after its first."""
    rounds: list[dict[tuple[str, str], dict[str, Any]]] = []
    times: Counter[tuple[str, str]] = Counter()
    for entity in entities:
        name = (_dag_of(entity, path), entity["dag_run_id"])
        if times[name] == len(rounds):
            rounds.append({})
        rounds[times[name]][name] = entity
        times[name] += 1
    for changes in rounds:
        marks: dict[tuple[str, str], list[str]] = defaultdict(list)
        given: dict[str, dict[str, str | None]] = defaultdict(dict)
        for (dag_id, run_id), entity in changes.items():
            if entity.get("state") is not None:
                marks[dag_id, entity["state"]].append(run_id)
            if "note" in entity:
                given[dag_id][run_id] = entity["note"]
        for (dag_id, state), run_ids in marks.items():
            run_actions.mark_runs(actor, dag_id, run_ids, state, now)
        for dag_id, of_dag in given.items():
            notes.note_runs(actor, dag_id, of_dag, now)


def _delete_runs(actor: Actor, path: str, entities: list[dict[str, Any]], now: datetime) -> None:
    doomed: dict[str, list[str]] = defaultdict(list)
    for entity in entities:
        doomed[_dag_of(entity, path)].append(entity["dag_run_id"])
    for dag_id, run_ids in doomed.items():
        run_actions.delete_runs(actor, dag_id, run_ids, now)


class BulkRuns:
    """The kind of a bulk request on the runs below a path."""

    @staticmethod
    def of(path: str) -> bulk.Kind:
        def existing(actor: Actor, entities: list[dict[str, Any]]) -> set[str]:
            found: set[str] = set()
            for dag_id in {_dag_of(entity, path) for entity in entities}:
                ids = [one["dag_run_id"] for one in entities if _dag_of(one, path) == dag_id]
                rows = access.runs(actor).filter(dag_id=dag_id, run_id__in=ids)
                found.update(f"{dag_id}.{run_id}" for run_id in rows.values_list("run_id", flat=True))
            return found

        return bulk.Kind(
            body=RunEntity,
            name_of=lambda one: f"{_dag_of(one, path)}.{one['dag_run_id']}",
            existing=existing,
            create=None,
            update=lambda actor, entities, now: _change_runs(actor, path, entities, now),
            delete=lambda actor, entities, now: _delete_runs(actor, path, entities, now),
            from_name=lambda name: {"dag_run_id": name},
        )


class TaskEntity(PatchBody):
    task_id = bodies.Text()
    map_index = serializers.IntegerField(required=False, allow_null=True, min_value=-1, max_value=2**31 - 1)
    dag_id = bodies.Text(required=False, allow_null=True)
    dag_run_id = bodies.Text(required=False, allow_null=True)


def _run_of(entity: dict[str, Any], path: str) -> str:
    run_id = entity.get("dag_run_id") or path
    if run_id == "~":
        raise errors.not_valid("missing", ["body", "dag_run_id"], "dag_run_id is required where the path has ~")
    return run_id


class BulkTasks:
    """The kind of a bulk request on the task instances below a path."""

    def __init__(self, dag_id: str, run_id: str) -> None:
        self.dag_id, self.run_id = dag_id, run_id

    def kind(self) -> bulk.Kind:
        return bulk.Kind(
            body=TaskEntity,
            name_of=self.name_of,
            existing=self.existing,
            create=None,
            update=bulk.one_by_one(self.update),
            delete=bulk.one_by_one(self.delete),
            from_name=lambda name: {"task_id": name},
        )

    def name_of(self, one: dict[str, Any]) -> str:
        index = -1 if one.get("map_index") is None else one["map_index"]
        return f"{_dag_of(one, self.dag_id)}.{_run_of(one, self.run_id)}.{one['task_id']}[{index}]"

    def existing(self, actor: Actor, entities: list[dict[str, Any]]) -> set[str]:
        return {self.name_of(one) for one in entities if self._rows(actor, one).exists()}

    def update(self, actor: Actor, one: dict[str, Any], now: datetime) -> None:
        wanted = self._wanted(one)
        if one.get("new_state"):
            mark.mark(actor, wanted, one["new_state"], now)
        if "note" in one:
            notes.note_tasks(actor, wanted, one["note"], now)

    def delete(self, actor: Actor, one: dict[str, Any], now: datetime) -> None:
        task_instances.delete(actor, self._wanted(one), now)

    def _rows(self, actor: Actor, one: dict[str, Any]) -> Any:
        index = one.get("map_index")
        rows = access.task_instances(actor).filter(
            dag_run__dag_id=_dag_of(one, self.dag_id),
            dag_run__run_id=_run_of(one, self.run_id),
            task_id=one["task_id"],
        )
        return rows if index is None else rows.filter(map_index=index)

    def _wanted(self, one: dict[str, Any]) -> selection.Wanted:
        index = one.get("map_index")
        return selection.Wanted(
            _dag_of(one, self.dag_id),
            tasks=[one["task_id"] if index is None else (one["task_id"], index)],
            runs=[_run_of(one, self.run_id)],
            upstream=one.get("include_upstream", False),
            downstream=one.get("include_downstream", False),
            past=one.get("include_past", False),
            future=one.get("include_future", False),
        )


class PartitionBody(bodies.Body):
    """Which partitions a request is about; their dates are refused (``_refuse_partition_dates``)."""

    partition_key = bodies.Text(required=False, allow_null=True)
    partition_date_start = bodies.Moment(required=False, allow_null=True)
    partition_date_end = bodies.Moment(required=False, allow_null=True)


class ClearRunsBody(PartitionBody):
    dry_run = bodies.Flag(default=True)
    only_failed = bodies.Flag(default=False)
    only_new = bodies.Flag(default=False)
    run_on_latest_version = bodies.Flag(required=False, allow_null=True)
    note = bodies.Text(required=False, allow_null=True, max_length=bodies.NOTE)
    dag_runs = serializers.ListField(child=serializers.JSONField(), required=False, max_length=bulk.MOST)


class ClearRunsView(Endpoint):
    """Clears the runs named, or those of a partition key; a preview by default."""

    kind = "run"
    needs = {"POST": ("change", "run")}

    def post(self, request: Request, dag_id: str) -> Response:
        body = bodies.read(request, ClearRunsBody)
        visible(self.actor, dag_id)
        _refuse_partition_dates(body)
        run_ids = self._runs(dag_id, body)
        if body["dry_run"]:
            wanted = selection.Wanted(dag_id, runs=run_ids, only_failed=body["only_failed"])
            return Response(documents.task_instances_of(selection.picked(self.actor, wanted)))
        self._clear(dag_id, run_ids, body)
        rows = list(queries.runs(access.runs(self.actor)).filter(dag_id=dag_id, run_id__in=run_ids).order_by("pk"))
        return Response({"dag_runs": [documents.run(row) for row in rows], "total_entries": len(rows)})

    def _clear(self, dag_id: str, run_ids: list[str], body: dict[str, Any]) -> None:
        latest = bool(body.get("run_on_latest_version"))
        if not body["only_new"]:
            how = {"only_failed": body["only_failed"], "latest_version": latest, "note": body.get("note")}
            run_actions.clear_runs(self.actor, dag_id, run_ids, self.now, **how)
            return
        with db.atomic():
            for run_id in run_ids:
                run_actions.clear_run(self.actor, dag_id, run_id, self.now, only_new=True, note=body.get("note"))

    def _runs(self, dag_id: str, body: dict[str, Any]) -> list[str]:
        if body.get("dag_runs"):
            entities = [bodies.check(item, RunEntity) for item in body["dag_runs"]]
            return sorted({one["dag_run_id"] for one in entities if _dag_of(one, dag_id) == dag_id})
        if body.get("partition_key") is None:
            raise errors.Problem(400, "Name the runs: dag_runs, or partition_key.")
        rows = access.runs(self.actor).filter(dag_id=dag_id, partition_key=body["partition_key"])
        return sorted(rows.values_list("run_id", flat=True))


class ClearPartitionsBody(PartitionBody):
    run_id = bodies.Text(required=False, allow_null=True)
    clear_task_instances = bodies.Flag(default=False)
    dry_run = bodies.Flag(default=True)


class ClearPartitionsView(Endpoint):
    """Takes runs out of their partition; a count by default."""

    kind = "run"
    needs = {"POST": ("change", "run")}

    def post(self, request: Request, dag_id: str) -> Response:
        body = bodies.read(request, ClearPartitionsBody)
        visible(self.actor, dag_id)
        _refuse_partition_dates(body)
        run_id, key = body.get("run_id"), body.get("partition_key")
        if (run_id is None) == (key is None):
            raise errors.not_valid("value_error", ["body"], "Exactly one of run_id and partition_key must be given")
        done = partitions.empty(
            self.actor,
            dag_id,
            self.now,
            run_id=run_id,
            partition_key=key,
            clear_tasks=body["clear_task_instances"],
            dry_run=body["dry_run"],
        )
        return Response(
            {
                "dag_runs_cleared": done.runs,
                "task_instances_cleared": done.task_instances,
                "dry_run": body["dry_run"],
            }
        )


def _refuse_partition_dates(body: dict[str, Any]) -> None:
    """Runs have a partition key here and no date beside it; a window must not be taken for "all"."""
    for name in ("partition_date_start", "partition_date_end"):
        if body.get(name) is not None:
            raise errors.Problem(400, f"Runs have no partition date here, so {name} finds none: use partition_key.")


class RunListView(RunsView):
    """The list of runs, and bulk changes of it."""

    def patch(self, request: Request, dag_id: str) -> Response:
        return Response(bulk.perform(self.actor, request, BulkRuns.of(dag_id), self.now))


class TaskInstanceListView(TaskInstancesView):
    """The list of task instances, and bulk changes of it."""

    def patch(self, request: Request, dag_id: str, dag_run_id: str) -> Response:
        return Response(bulk.perform(self.actor, request, BulkTasks(dag_id, dag_run_id).kind(), self.now))
