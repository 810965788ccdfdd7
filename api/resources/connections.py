"""Connections. Passwords and secret parts of extras are never shown."""

from __future__ import annotations

import json
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import secrets
from scheduler_app.actions import connections as connection_actions
from scheduler_app.models import Connection

from .. import bodies, errors, masking, pages, params
from ..endpoint import Endpoint

ORDER = {name: name for name in ("id", "connection_id", "conn_type", "description", "host", "port")} | {
    "conn_id": "connection_id",
    "team_name": "id",
}
FIELDS = {
    "connection_id",
    "conn_type",
    "description",
    "host",
    "login",
    "schema",
    "port",
    "password",
    "extra",
    "team_name",
}


def document(row: Connection) -> dict[str, Any]:
    """``ConnectionResponse``."""
    extra = secrets.decrypt(row.extra_encrypted) if row.extra_encrypted else None
    return {
        "connection_id": row.connection_id,
        "conn_type": row.conn_type,
        "description": row.description,
        "host": row.host,
        "login": row.login,
        "schema": row.schema,
        "port": row.port,
        "password": masking.MASK if row.password_encrypted else None,
        "extra": masking.extra(extra),
        "team_name": None,
    }


class ConnectionBody(bodies.Body):
    connection_id = serializers.RegexField(r"^[\w.-]+\Z", max_length=200, trim_whitespace=False)
    conn_type = bodies.Text(max_length=500)
    description = bodies.Text(required=False, allow_null=True)
    host = bodies.Text(required=False, allow_null=True)
    login = bodies.Text(required=False, allow_null=True)
    schema = bodies.Text(required=False, allow_null=True)
    port = serializers.IntegerField(required=False, allow_null=True, min_value=-(2**31), max_value=2**31 - 1)
    password = bodies.Text(required=False, allow_null=True)
    extra = bodies.Text(required=False, allow_null=True)
    team_name = bodies.Text(required=False, allow_null=True, max_length=50)

    def validate_extra(self, value: str | None) -> str | None:
        """An object of JSON, as hooks read it."""
        if not value:
            return value
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            read = None
        if not isinstance(read, dict):
            raise serializers.ValidationError("The `extra` field must be a JSON object", code="value_error")
        return value


class ConnectionsView(Endpoint):
    kind = "connection"

    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = params.narrow(Connection.objects.all(), params.matching("connection_id", "connection_id"), query)
        found = pages.page(pages.ordered(rows, query, ORDER, ["id"]), query)
        return Response({"connections": [document(row) for row in found.rows], "total_entries": found.total})

    def post(self, request: Request) -> Response:
        body = bodies.read(request, ConnectionBody)
        body.pop("team_name", None)
        return Response(document(connection_actions.create(self.actor, now=self.now, **body)), status=201)


class ConnectionView(Endpoint):
    kind = "connection"

    def get(self, request: Request, connection_id: str) -> Response:
        return Response(document(_row(connection_id)))

    def patch(self, request: Request, connection_id: str) -> Response:
        body = bodies.read(request, ConnectionBody)
        if body["connection_id"] != connection_id:
            raise errors.Problem(400, "The connection_id in the request body does not match the URL parameter")
        fields = bodies.masked(body, request, FIELDS)
        fields = {k: v for k, v in fields.items() if k not in ("connection_id", "team_name")}
        # What a client read masked and writes back stays as it was.
        if masking.is_mask(fields.get("password")):
            del fields["password"]
        if fields.get("extra"):
            fields["extra"] = _restored(connection_id, fields["extra"])
        return Response(document(connection_actions.change(self.actor, connection_id, self.now, **fields)))

    def delete(self, request: Request, connection_id: str) -> Response:
        connection_actions.delete(self.actor, connection_id, self.now)
        return Response(status=204)


class ConnectionTestView(Endpoint):
    """Not offered: hooks are user code, which never runs in this process."""

    kind = "connection"

    def post(self, request: Request) -> Response:
        bodies.read(request, ConnectionBody)
        raise errors.Problem(403, "Testing connections is disabled: hooks run in tasks only. Test it in a task.")


def _row(connection_id: str) -> Connection:
    row = Connection.objects.filter(connection_id=connection_id).first()
    if row is None:
        raise errors.Problem(404, f"The Connection with connection_id: `{connection_id}` was not found")
    return row


def _restored(connection_id: str, extra: str) -> str:
    row = Connection.objects.filter(connection_id=connection_id).first()
    if row is None or not row.extra_encrypted or masking.MASK not in extra:
        return extra
    return json.dumps(masking.unmasked(json.loads(extra), json.loads(secrets.decrypt(row.extra_encrypted))))
