"""Keyed limits: an addition of ours, in the manner of pools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import access
from scheduler_app.actions import limits as limit_actions
from scheduler_app.models import Limit
from scheduler_app.queries.page_limits import LimitUse, uses

from .. import bodies, errors, pages, params
from ..endpoint import Endpoint

ORDER = {"id": "id", "name": "name", "amount": "amount"}
_AMOUNT = {"min_value": 0, "max_value": 2**31 - 1}


def document(row: Limit, use: LimitUse, shown: Mapping[str | None, str | None]) -> dict[str, Any]:
    return {
        "name": row.name,
        "amount": row.amount,
        "per_seconds": row.per_seconds,
        "description": row.description,
        "declared_by": shown[row.declared_by],
        "used": use.used,
        "waiting": use.waiting,
        "next_free_at": use.free_at.isoformat() if use.free_at else None,
    }


class LimitBody(bodies.Body):
    name = bodies.Text(max_length=128)
    amount = serializers.IntegerField(**_AMOUNT)
    per_seconds = serializers.FloatField(required=False, allow_null=True)
    description = bodies.Text(required=False, allow_null=True)


class LimitPatchBody(bodies.Body):
    amount = serializers.IntegerField(required=False, **_AMOUNT)
    per_seconds = serializers.FloatField(required=False, allow_null=True)
    description = bodies.Text(required=False, allow_null=True)


class _OfLimits(Endpoint):
    kind = "limit"

    def _one(self, row: Limit) -> dict[str, Any]:
        return document(row, uses(self.now)[row.name], access.shown_dag_ids(self.actor, [row.declared_by]))


class LimitsView(_OfLimits):
    def get(self, request: Request) -> Response:
        rows = params.narrow(Limit.objects.all(), params.matching("limit_name", "name"), request.query_params)
        found = pages.page(pages.ordered(rows, request.query_params, ORDER, ["id"]), request.query_params)
        use, shown = uses(self.now), access.shown_dag_ids(self.actor, (row.declared_by for row in found.rows))
        documents = [document(row, use[row.name], shown) for row in found.rows]
        return Response({"limits": documents, "total_entries": found.total})

    def post(self, request: Request) -> Response:
        body = bodies.read(request, LimitBody)
        made = limit_actions.create(self.actor, body.pop("name"), body.pop("amount"), self.now, **body)
        return Response(self._one(made), status=201)


class LimitView(_OfLimits):
    def get(self, request: Request, limit_name: str) -> Response:
        row = Limit.objects.filter(name=limit_name).first()
        if row is None:
            raise errors.Problem(404, f"The Limit with name: `{limit_name}` was not found")
        return Response(self._one(row))

    def patch(self, request: Request, limit_name: str) -> Response:
        body = bodies.read(request, LimitPatchBody)
        fields = bodies.masked(body, request, {"amount", "per_seconds", "description"})
        row = limit_actions.change(self.actor, limit_name, self.now, **fields)
        return Response(self._one(row))

    def delete(self, request: Request, limit_name: str) -> Response:
        limit_actions.delete(self.actor, limit_name, self.now)
        return Response(status=204)
