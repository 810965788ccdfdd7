"""Variables. A value whose key sounds like a secret is not shown."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import secrets
from scheduler_app.access import Actor
from scheduler_app.actions import variables as variable_actions
from scheduler_app.models import Variable

from .. import bodies, bulk, errors, masking, pages, params
from ..endpoint import Endpoint

ORDER = {"id": "id", "key": "key", "_val": "id", "description": "description", "is_encrypted": "id", "team_name": "id"}


def document(row: Variable) -> dict[str, Any]:
    """``VariableResponse``; the value is null when no key of this server reads it, so that one row spoils no list."""
    stored = secrets.readable(row.value_encrypted)
    return {
        "key": row.key,
        "value": masking.variable(row.key, stored) if stored is not None else None,
        "description": row.description,
        "is_encrypted": True,
        "team_name": None,
    }


class VariableBody(bodies.Body):
    key = bodies.Text(max_length=250)
    value = serializers.JSONField(allow_null=True)
    description = bodies.Text(required=False, allow_null=True)
    team_name = bodies.Text(required=False, allow_null=True, max_length=50)


def _text(value: Any) -> str:
    """A variable is a text; anything else is stored as JSON, as tasks read it with ``deserialize_json``."""
    return value if isinstance(value, str) else json.dumps(value, indent=2)


def create_from(actor: Actor, body: dict[str, Any], now: datetime) -> Variable:
    return variable_actions.create(actor, body["key"], _text(body["value"]), now, description=body.get("description"))


def change_from(actor: Actor, key: str, fields: dict[str, Any], now: datetime) -> Variable:
    changed = {name: fields[name] for name in ("description",) if name in fields}
    # A client that reads and writes back sends the mask; that must not become the value.
    if "value" in fields and not masking.is_mask(fields["value"]):
        changed["value"] = _text(fields["value"])
    return variable_actions.change(actor, key, now, **changed)


BULK = bulk.Kind(
    body=VariableBody,
    name_of=lambda body: body["key"],
    existing=lambda actor, some: set(
        Variable.objects.filter(key__in=[body["key"] for body in some]).values_list("key", flat=True)
    ),
    create=create_from,
    update=bulk.one_by_one(lambda actor, body, now: change_from(actor, body["key"], body, now)),
    delete=bulk.one_by_one(lambda actor, body, now: variable_actions.delete(actor, body["key"], now)),
    from_name=lambda name: {"key": name},
)


class VariablesView(Endpoint):
    kind = "variable"

    def get(self, request: Request) -> Response:
        rows = params.narrow(Variable.objects.all(), params.matching("variable_key", "key"), request.query_params)
        found = pages.page(pages.ordered(rows, request.query_params, ORDER, ["id"]), request.query_params)
        return Response({"variables": [document(row) for row in found.rows], "total_entries": found.total})

    def post(self, request: Request) -> Response:
        made = create_from(self.actor, bodies.read(request, VariableBody), self.now)
        return Response(document(made), status=201)

    def patch(self, request: Request) -> Response:
        return Response(bulk.perform(self.actor, request, BULK, self.now))


class VariableView(Endpoint):
    kind = "variable"

    def get(self, request: Request, variable_key: str) -> Response:
        row = Variable.objects.filter(key=variable_key).first()
        if row is None:
            raise errors.Problem(404, f"The Variable with key: `{variable_key}` was not found")
        return Response(document(row))

    def patch(self, request: Request, variable_key: str) -> Response:
        body = bodies.read(request, VariableBody)
        if body["key"] != variable_key:
            raise errors.Problem(400, "Invalid body, key from request body doesn't match uri parameter")
        fields = bodies.masked(body, request, {"key", "value", "description", "team_name"})
        return Response(document(change_from(self.actor, variable_key, fields, self.now)))

    def delete(self, request: Request, variable_key: str) -> Response:
        variable_actions.delete(self.actor, variable_key, self.now)
        return Response(status=204)
