"""The state that tasks keep across their tries and assets across runs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.actions import state_store as actions
from scheduler_app.conf import conf
from scheduler_app.models import AssetState, TaskState

from .. import bodies, errors, pages, params, serde
from ..endpoint import Endpoint, null
from ..render import stamp
from .task_instances import missing

_DEFAULT = "default"


class Expiry(bodies.Moment):
    """An instant, null (never), or "default": what the setting ``task_state_days`` says."""

    def to_internal_value(self, data: Any) -> Any:
        return data if data == _DEFAULT else super().to_internal_value(data)


class ValueBody(bodies.Body):
    value = serializers.JSONField()


class TaskValueBody(ValueBody):
    expires_at = Expiry(default=_DEFAULT, allow_null=True)


def _task_entry(row: TaskState) -> dict[str, Any]:
    return {
        "key": row.key,
        "value": serde.shown(row.value),
        "updated_at": stamp(row.updated_at),
        "expires_at": stamp(row.expires_at),
    }


def _asset_entries(rows: Iterable[AssetState], actor: access.Actor) -> list[dict[str, Any]]:
    """Who wrote a value is named where the reader may see the DAG."""
    found = list(rows)
    writers = {row.pk: (row.updated_by or {}).get("dag_id") for row in found}
    seen = access.seen_dag_ids(actor, filter(None, writers.values()))
    hidden = {key for key, dag_id in writers.items() if dag_id and dag_id not in seen}
    return [_asset_entry(row, None if row.pk in hidden else row.updated_by) for row in found]


def _asset_entry(row: AssetState, by: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "key": row.key,
        "value": serde.shown(row.value),
        "updated_at": stamp(row.updated_at),
        "last_updated_by": None
        if by is None
        else {"kind": "task", **dict.fromkeys(("dag_id", "run_id", "task_id", "map_index")), **by},
    }


class _OfTask(Endpoint):
    kind = "task"

    def place(self, request: Request, dag_id: str, run_id: str, task_id: str) -> tuple[str, str, str, int]:
        index = params.get(request.query_params, "map_index", params.whole, -1)
        if index < -1:
            raise errors.not_valid("greater_than_equal", ["query", "map_index"], "Input should be -1 or more", index)
        return dag_id, run_id, task_id, index

    def rows(self, place: tuple[str, str, str, int]) -> Any:
        dag_id, run_id, task_id, index = place
        tasks = access.task_instances(self.actor).filter(
            dag_run__dag_id=dag_id, dag_run__run_id=run_id, task_id=task_id, map_index=index
        )
        task = tasks.first()
        if task is None:
            raise errors.Problem(404, missing(*place))
        return TaskState.objects.of_task(task).shown().alive(self.now)


class TaskStatesView(_OfTask):
    """All that a task instance keeps."""

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        rows = self.rows(self.place(request, dag_id, dag_run_id, task_id))
        found = pages.page(rows.order_by("key"), request.query_params)
        return Response({"task_state_store": [_task_entry(row) for row in found.rows], "total_entries": found.total})

    def delete(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        if params.get(request.query_params, "all_map_indices", params.flag, False):
            actions.delete_of_all_indexes(self.actor, dag_id, dag_run_id, task_id, self.now)
        else:
            actions.delete_of_task(self.actor, self.place(request, dag_id, dag_run_id, task_id), self.now)
        return Response(status=204)


class TaskStateView(_OfTask):
    """One value that a task instance keeps."""

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, key: str) -> Response:
        row = self.rows(self.place(request, dag_id, dag_run_id, task_id)).filter(key=key).first()
        if row is None:
            raise errors.Problem(404, f"Task state store key `{key}` not found")
        return Response(_task_entry(row))

    def put(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, key: str) -> Response:
        body = bodies.read(request, TaskValueBody)
        place = self.place(request, dag_id, dag_run_id, task_id)
        actions.set_of_task(self.actor, place, _key(key), body["value"], self.now, expires_at=self._expiry(body))
        return Response(status=204)

    def patch(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, key: str) -> Any:
        body = bodies.read(request, ValueBody)
        place = self.place(request, dag_id, dag_run_id, task_id)
        actions.change_of_task(self.actor, place, key, body["value"], self.now)
        return null()

    def delete(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, key: str) -> Response:
        actions.delete_of_task(self.actor, self.place(request, dag_id, dag_run_id, task_id), self.now, key)
        return Response(status=204)

    def _expiry(self, body: dict[str, Any]) -> datetime | None:
        if body["expires_at"] != _DEFAULT:
            return body["expires_at"]  # type: ignore[no-any-return]
        days = conf().task_state_days
        return self.now + timedelta(days=days) if days else None


class _OfAsset(Endpoint):
    kind = "asset"

    def rows(self, asset_id: str) -> Any:
        asset = access.assets(self.actor).filter(pk=params.in_path(asset_id, "asset_id")).first()
        if asset is None:
            raise errors.Problem(404, f"The Asset with ID: `{asset_id}` was not found")
        return AssetState.objects.filter(asset=asset)


class AssetStatesView(_OfAsset):
    """All that an asset keeps."""

    def get(self, request: Request, asset_id: str) -> Response:
        found = pages.page(self.rows(asset_id).order_by("key"), request.query_params)
        entries = _asset_entries(found.rows, self.actor)
        return Response({"asset_state_store": entries, "total_entries": found.total})

    def delete(self, request: Request, asset_id: str) -> Response:
        actions.delete_of_asset(self.actor, params.in_path(asset_id, "asset_id"), self.now)
        return Response(status=204)


class AssetStateView(_OfAsset):
    """One value that an asset keeps."""

    def get(self, request: Request, asset_id: str, key: str) -> Response:
        row = self.rows(asset_id).filter(key=key).first()
        if row is None:
            raise errors.Problem(404, f"Asset state store key `{key}` not found")
        return Response(_asset_entries([row], self.actor)[0])

    def put(self, request: Request, asset_id: str, key: str) -> Response:
        body = bodies.read(request, ValueBody)
        number = params.in_path(asset_id, "asset_id")
        actions.set_of_asset(self.actor, number, _key(key), body["value"], self.now)
        return Response(status=204)

    def delete(self, request: Request, asset_id: str, key: str) -> Response:
        actions.delete_of_asset(self.actor, params.in_path(asset_id, "asset_id"), self.now, key)
        return Response(status=204)


def _key(key: str) -> str:
    if len(key) > 512:
        raise errors.not_valid("string_too_long", ["path", "key"], "A key has at most 512 characters")
    return key
