"""Connections: where tasks connect to. Passwords and extras are encrypted at rest and never reach the audit."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app import secrets
from scheduler_app.access import Actor
from scheduler_app.models import Connection, DagFile, db

from . import journal, permit
from .errors import Conflict, Missing

#: What is stored as it is; ``password`` and ``extra`` are stored encrypted.
PLAIN = ("conn_type", "description", "host", "login", "schema", "port")
SECRET = ("password", "extra")


def create(actor: Actor, connection_id: str, now: datetime, **fields: Any) -> Connection:
    """A new connection from ``conn_type`` and any of :data:`PLAIN` and :data:`SECRET`. Raises Conflict, Forbidden."""
    permit.require(actor, "add", "connection")
    with db.atomic():
        if Connection.objects.filter(connection_id=connection_id).exists():
            raise Conflict(f"The Connection with connection_id: `{connection_id}` already exists")
        connection = _filled(Connection(connection_id=connection_id), fields)
        connection.save()
        DagFile.objects.read_again(f"connection:{connection_id}", now)
        journal.record(actor, "post_connection", now, after=_facts(connection))
    return connection


def change(actor: Actor, connection_id: str, now: datetime, **fields: Any) -> Connection:
    """Sets the fields given. Raises Missing, Forbidden."""
    permit.require(actor, "change", "connection")
    with db.atomic():
        connection = _locked(connection_id)
        before = _facts(connection)
        _filled(connection, fields).save()
        DagFile.objects.read_again(f"connection:{connection_id}", now)
        changed = [name for name in SECRET if name in fields]
        journal.record(
            actor, "patch_connection", now, before=before, after=_facts(connection) | {"secrets_changed": changed}
        )
    return connection


def delete(actor: Actor, connection_id: str, now: datetime) -> None:
    """Raises Missing, Forbidden."""
    permit.require(actor, "delete", "connection")
    with db.atomic():
        connection = _locked(connection_id)
        journal.record(actor, "delete_connection", now, before=_facts(connection))
        connection.delete()
        DagFile.objects.read_again(f"connection:{connection_id}", now)


def _filled(connection: Connection, fields: dict[str, Any]) -> Connection:
    for name in PLAIN:
        if name in fields:
            setattr(connection, name, fields[name])
    for name in SECRET:
        if name in fields:
            value = fields[name]
            setattr(connection, f"{name}_encrypted", secrets.encrypt(value) if value is not None else None)
    return connection


def _locked(connection_id: str) -> Connection:
    connection = Connection.objects.filter(connection_id=connection_id).select_for_update(no_key=True).first()
    if connection is None:
        raise Missing(f"The Connection with connection_id: `{connection_id}` was not found")
    return connection


def _facts(connection: Connection) -> dict[str, Any]:
    return {"connection_id": connection.connection_id} | {name: getattr(connection, name) for name in PLAIN}
