"""Connections. Passwords and secret parts of extras are never shown."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from scheduler_app import secrets
from scheduler_app.access import Actor
from scheduler_app.actions import connections as connection_actions
from scheduler_app.models import Connection

from .. import bodies, bulk, errors, masking, pages, params
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
    """``ConnectionResponse``; an extra that no key of this server reads is null."""
    extra = secrets.readable(row.extra_encrypted) if row.extra_encrypted else None
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


def create_from(actor: Actor, body: dict[str, Any], now: datetime) -> Connection:
    return connection_actions.create(actor, now=now, **{k: v for k, v in body.items() if k != "team_name"})


def change_from(actor: Actor, connection_id: str, fields: dict[str, Any], now: datetime) -> Connection:
    """Sets fields; what a client read masked and writes back stays as it was."""
    changed = {k: v for k, v in fields.items() if k not in ("connection_id", "team_name")}
    if masking.is_mask(changed.get("password")):
        del changed["password"]
    if changed.get("extra"):
        changed["extra"] = _restored(connection_id, changed["extra"])
    return connection_actions.change(actor, connection_id, now, **changed)


BULK = bulk.Kind(
    body=ConnectionBody,
    name_of=lambda body: body["connection_id"],
    existing=lambda actor, some: set(
        Connection.objects.filter(connection_id__in=[body["connection_id"] for body in some]).values_list(
            "connection_id", flat=True
        )
    ),
    create=create_from,
    update=bulk.one_by_one(lambda actor, body, now: change_from(actor, body["connection_id"], body, now)),
    delete=bulk.one_by_one(lambda actor, body, now: connection_actions.delete(actor, body["connection_id"], now)),
    from_name=lambda name: {"connection_id": name},
)


class ConnectionsView(Endpoint):
    kind = "connection"

    def get(self, request: Request) -> Response:
        query = request.query_params
        rows = params.narrow(Connection.objects.all(), params.matching("connection_id", "connection_id"), query)
        found = pages.page(pages.ordered(rows, query, ORDER, ["id"]), query)
        return Response({"connections": [document(row) for row in found.rows], "total_entries": found.total})

    def post(self, request: Request) -> Response:
        made = create_from(self.actor, bodies.read(request, ConnectionBody), self.now)
        return Response(document(made), status=201)

    def patch(self, request: Request) -> Response:
        return Response(bulk.perform(self.actor, request, BULK, self.now))


class ConnectionView(Endpoint):
    kind = "connection"

    def get(self, request: Request, connection_id: str) -> Response:
        return Response(document(_row(connection_id)))

    def patch(self, request: Request, connection_id: str) -> Response:
        body = bodies.read(request, ConnectionBody)
        if body["connection_id"] != connection_id:
            raise errors.Problem(400, "The connection_id in the request body does not match the URL parameter")
        fields = bodies.masked(body, request, FIELDS)
        return Response(document(change_from(self.actor, connection_id, fields, self.now)))

    def delete(self, request: Request, connection_id: str) -> Response:
        connection_actions.delete(self.actor, connection_id, self.now)
        return Response(status=204)


class ConnectionTestView(Endpoint):
    """Not offered: hooks are user code, which never runs in this process."""

    kind = "connection"

    def post(self, request: Request) -> Response:
        bodies.read(request, ConnectionBody)
        raise errors.Problem(403, _TEST_IN_A_TASK)


class TestRequestBody(ConnectionBody):
    commit_on_success = bodies.Flag(default=False)
    executor = bodies.Text(required=False, allow_null=True)
    queue = bodies.Text(required=False, allow_null=True)


class EnqueueTestView(Endpoint):
    """The same on a worker: refused likewise, so there is none to ask about."""

    kind = "connection"
    header = "Airflow-Connection-Test-Token"

    def get(self, request: Request) -> Response:
        token = request.headers.get(self.header)
        if token is None:
            raise errors.not_valid("missing", ["header", self.header.lower()], "Field required")
        raise errors.Problem(404, "No connection test was found for this token.")

    def post(self, request: Request) -> Response:
        bodies.read(request, TestRequestBody)
        raise errors.Problem(403, _TEST_IN_A_TASK)


_TEST_IN_A_TASK = "Testing connections is disabled: hooks run in tasks only. Test it in a task."


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
