"""XComs: what tasks pushed."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.actions import xcoms as xcom_actions
from scheduler_app.models import XCom
from scheduler_app.queries import rows as queries
from scheduler_app.queries.rows import TaskNames

from .. import bodies, errors, pages, params, serde
from ..endpoint import Endpoint
from ..render import stamp
from .dags import visible
from .runs import visible_run

FILTERS = (
    params.exact("xcom_key", "key"),
    params.exact("map_index", read=params.whole),
    params.exact("map_index_filter", "map_index", params.whole),
    *params.matching("xcom_key", "key"),
    *params.matching("dag_display_name", "dag_run__dag__dag_display_name"),
    *params.matching("run_id", "dag_run__run_id"),
    *params.matching("task_id", "task_id"),
    *params.bounds("logical_date", "dag_run__logical_date"),
    *params.bounds("run_after", "dag_run__run_after"),
)
ORDER = {
    "dag_id": "dag_id",
    "task_id": "task_id",
    "run_id": "dag_run__run_id",
    "map_index": "map_index",
    "key": "key",
    "timestamp": "timestamp",
    "run_after": "dag_run__run_after",
    "logical_date": "dag_run__logical_date",
}


def documents(rows: list[XCom]) -> list[dict[str, Any]]:
    """``XComResponse``, without the value."""
    names = TaskNames(row.dag_run.dag_version_id for row in rows)
    return [
        {
            "key": row.key,
            "timestamp": stamp(row.timestamp),
            "logical_date": stamp(row.dag_run.logical_date),
            "map_index": row.map_index,
            "task_id": row.task_id,
            "dag_id": row.dag_id,
            "run_id": row.dag_run.run_id,
            "dag_display_name": row.dag_run.dag.dag_display_name or row.dag_id,
            "task_display_name": names.display(row.dag_run.dag_version_id, row.task_id),
            "run_after": stamp(row.dag_run.run_after),
        }
        for row in rows
    ]


def with_value(row: XCom, *, stringify: bool = False) -> dict[str, Any]:
    value = serde.shown(row.value)
    if stringify and value is not None:
        value = str(value)
    return documents([row])[0] | {"value": value}


class CreateBody(bodies.Body):
    key = bodies.Text(max_length=512, allow_blank=False)
    value = serializers.JSONField(allow_null=True)
    map_index = serializers.IntegerField(default=-1, min_value=-1, max_value=2**31 - 1)


class UpdateBody(bodies.Body):
    value = serializers.JSONField(allow_null=True)
    map_index = serializers.IntegerField(default=-1, min_value=-1, max_value=2**31 - 1)


class XComsView(Endpoint):
    kind = "xcom"

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        rows = access.xcoms(self.actor)
        if dag_id != "~" and dag_run_id != "~":
            rows = rows.filter(dag_run_id=visible_run(self.actor, dag_id, dag_run_id).pk)
        elif dag_id != "~":
            rows = rows.filter(dag_id=visible(self.actor, dag_id).dag_id)
        elif dag_run_id != "~":
            rows = rows.filter(dag_run__run_id=dag_run_id)
        if task_id != "~":
            rows = rows.filter(task_id=task_id)
        rows = params.narrow(rows, FILTERS, request.query_params)
        default = ["dag_id", "task_id", "run_id", "map_index", "key"]
        ordered = pages.ordered(rows, request.query_params, ORDER, default)
        found = pages.page(ordered, request.query_params, lambda keys: queries.xcoms(keys).defer("value"))
        return Response({"xcom_entries": documents(found.rows), "total_entries": found.total})

    def post(self, request: Request, dag_id: str, dag_run_id: str, task_id: str) -> Response:
        body = bodies.read(request, CreateBody)
        made = xcom_actions.create(
            self.actor, dag_id, dag_run_id, task_id, body["key"], body["value"], self.now, map_index=body["map_index"]
        )
        return Response(with_value(queries.xcoms(XCom.objects.all()).get(pk=made.pk)), status=201)


class XComView(Endpoint):
    kind = "xcom"

    def get(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, xcom_key: str) -> Response:
        query = request.query_params
        if params.get(query, "deserialize", params.flag, False):
            raise errors.Problem(
                400, "XCom deserialization is disabled: values of user classes are rebuilt in tasks only."
            )
        index = params.get(query, "map_index", params.whole, -1)
        stringify = params.get(query, "stringify", params.flag, False)
        rows = queries.xcoms(access.xcoms(self.actor)).filter(
            dag_run__dag_id=dag_id, dag_run__run_id=dag_run_id, task_id=task_id, key=xcom_key, map_index=index
        )
        row = rows.first()
        if row is None:
            raise errors.Problem(404, f"XCom entry with key: `{xcom_key}` not found")
        return Response(with_value(row, stringify=stringify))

    def patch(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, xcom_key: str) -> Response:
        body = bodies.read(request, UpdateBody)
        row = xcom_actions.change(
            self.actor, dag_id, dag_run_id, task_id, xcom_key, body["value"], self.now, map_index=body["map_index"]
        )
        return Response(with_value(queries.xcoms(XCom.objects.all()).get(pk=row.pk)))

    def delete(self, request: Request, dag_id: str, dag_run_id: str, task_id: str, xcom_key: str) -> Response:
        index = params.get(request.query_params, "map_index", params.whole, -1)
        xcom_actions.delete(self.actor, dag_id, dag_run_id, task_id, xcom_key, self.now, map_index=index)
        return Response(status=204)
