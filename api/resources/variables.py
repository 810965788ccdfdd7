"""Variables. A value whose key sounds like a secret is not shown."""

from __future__ import annotations

import json
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import secrets
from scheduler_app.actions import variables as variable_actions
from scheduler_app.models import Variable

from .. import bodies, errors, masking, pages, params
from ..endpoint import Endpoint

ORDER = {"id": "id", "key": "key", "_val": "id", "description": "description", "is_encrypted": "id", "team_name": "id"}


def document(row: Variable) -> dict[str, Any]:
    """``VariableResponse``."""
    return {
        "key": row.key,
        "value": masking.variable(row.key, secrets.decrypt(row.value_encrypted)),
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


class VariablesView(Endpoint):
    kind = "variable"

    def get(self, request: Request) -> Response:
        rows = params.narrow(Variable.objects.all(), params.matching("variable_key", "key"), request.query_params)
        found = pages.page(pages.ordered(rows, request.query_params, ORDER, ["id"]), request.query_params)
        return Response({"variables": [document(row) for row in found.rows], "total_entries": found.total})

    def post(self, request: Request) -> Response:
        body = bodies.read(request, VariableBody)
        made = variable_actions.create(
            self.actor, body["key"], _text(body["value"]), self.now, description=body.get("description")
        )
        return Response(document(made), status=201)


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
        changed = {name: fields[name] for name in ("description",) if name in fields}
        # A client that reads and writes back sends the mask; that must not become the value.
        if "value" in fields and not masking.is_mask(fields["value"]):
            changed["value"] = _text(fields["value"])
        return Response(document(variable_actions.change(self.actor, variable_key, self.now, **changed)))

    def delete(self, request: Request, variable_key: str) -> Response:
        variable_actions.delete(self.actor, variable_key, self.now)
        return Response(status=204)
