"""Pools."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app.access import Actor
from scheduler_app.actions import pools as pool_actions
from scheduler_app.models import Pool
from scheduler_app.models.pool import PoolUse

from .. import bodies, bulk, errors, pages, params
from ..endpoint import Endpoint

ORDER = {"id": "id", "name": "pool", "pool": "pool", "slots": "slots"}
_INT = {"min_value": -1, "max_value": 2**31 - 1}


def document(row: Pool, use: PoolUse) -> dict[str, Any]:
    """``PoolResponse``."""
    return {
        "name": row.pool,
        "slots": row.slots,
        "description": row.description,
        "include_deferred": row.include_deferred,
        "occupied_slots": use.occupied,
        "running_slots": use.running,
        "queued_slots": use.queued,
        "scheduled_slots": use.scheduled,
        # no limit is written as the limit itself is
        "open_slots": -1 if row.slots == -1 else int(use.open_slots),
        "deferred_slots": use.deferred,
        "team_name": None,
    }


class PoolBody(bodies.Body):
    name = bodies.Text(max_length=256)
    slots = serializers.IntegerField(**_INT)
    description = bodies.Text(required=False, allow_null=True)
    include_deferred = bodies.Flag(default=False)
    team_name = bodies.Text(required=False, allow_null=True, max_length=50)


class PoolPatchBody(bodies.Body):
    pool = bodies.Text(required=False, allow_null=True, max_length=256)
    #: the same under the name that answers have
    name = bodies.Text(required=False, allow_null=True, max_length=256)
    slots = serializers.IntegerField(required=False, allow_null=True, **_INT)
    description = bodies.Text(required=False, allow_null=True)
    include_deferred = bodies.Flag(required=False, allow_null=True)
    team_name = bodies.Text(required=False, allow_null=True, max_length=50)


def create_from(actor: Actor, body: dict[str, Any], now: datetime) -> Pool:
    return pool_actions.create(
        actor,
        body["name"],
        body["slots"],
        now,
        description=body.get("description"),
        include_deferred=body["include_deferred"],
    )


def _change_from(actor: Actor, body: dict[str, Any], now: datetime) -> Pool:
    fields = {key: body[key] for key in ("slots", "description", "include_deferred") if key in body}
    return pool_actions.change(actor, body["name"], now, **fields)


BULK = bulk.Kind(
    body=PoolBody,
    name_of=lambda body: body["name"],
    existing=lambda actor, some: set(
        Pool.objects.filter(pool__in=[body["name"] for body in some]).values_list("pool", flat=True)
    ),
    create=create_from,
    update=bulk.one_by_one(_change_from),
    delete=bulk.one_by_one(lambda actor, body, now: pool_actions.delete(actor, body["name"], now)),
    from_name=lambda name: {"name": name},
)


class PoolsView(Endpoint):
    kind = "pool"

    def get(self, request: Request) -> Response:
        rows = params.narrow(Pool.objects.all(), params.matching("pool_name", "pool"), request.query_params)
        found = pages.page(pages.ordered(rows, request.query_params, ORDER, ["id"]), request.query_params)
        use = Pool.objects.use()
        return Response({"pools": [document(row, use[row.pool]) for row in found.rows], "total_entries": found.total})

    def post(self, request: Request) -> Response:
        made = create_from(self.actor, bodies.read(request, PoolBody), self.now)
        return Response(document(made, Pool.objects.use()[made.pool]), status=201)

    def patch(self, request: Request) -> Response:
        return Response(bulk.perform(self.actor, request, BULK, self.now))


class PoolView(Endpoint):
    kind = "pool"

    def get(self, request: Request, pool_name: str) -> Response:
        row = Pool.objects.filter(pool=pool_name).first()
        if row is None:
            raise errors.Problem(404, f"The Pool with name: `{pool_name}` was not found")
        return Response(document(row, Pool.objects.use()[row.pool]))

    def patch(self, request: Request, pool_name: str) -> Response:
        body = bodies.read(request, PoolPatchBody)
        if (body.get("pool") or body.get("name") or pool_name) != pool_name:
            raise errors.Problem(400, "A pool keeps its name: the name in the body differs from that in the path.")
        known = {"slots", "description", "include_deferred"}
        fields = bodies.masked(body, request, known | {"pool", "name", "team_name"})
        # null means "as it is", but for the description, which may be emptied
        fields = {k: v for k, v in fields.items() if k in known and (v is not None or k == "description")}
        row = pool_actions.change(self.actor, pool_name, self.now, **fields)
        return Response(document(row, Pool.objects.use()[row.pool]))

    def delete(self, request: Request, pool_name: str) -> Response:
        pool_actions.delete(self.actor, pool_name, self.now)
        return Response(status=204)
