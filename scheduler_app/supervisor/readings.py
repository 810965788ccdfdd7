"""What a DAG file may ask while it is read: Variables and Connections. Tasks ask for them by the same functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app import secrets
from scheduler_app.models import Connection, Variable, db

Json = Any


def get_variable(key: str) -> Json:
    """``{"value": text}``, or None when there is no such variable."""
    token = Variable.objects.filter(key=key).values_list("value_encrypted", flat=True).first()
    return None if token is None else {"value": secrets.decrypt(token)}


def get_connection(conn_id: str) -> Json:
    """The connection as docs/borders.md §3 has it, or None."""
    row = Connection.objects.filter(connection_id=conn_id).first()
    if row is None:
        return None
    return {
        "conn_id": row.connection_id,
        "conn_type": row.conn_type,
        "description": row.description,
        "host": row.host,
        "schema": row.schema,
        "login": row.login,
        "password": secrets.decrypt(row.password_encrypted) if row.password_encrypted else None,
        "port": row.port,
        "extra": secrets.decrypt(row.extra_encrypted) if row.extra_encrypted else None,
    }


#: op → (what the answer is of, the argument that names it, the function)
_READINGS: dict[str, tuple[str, str, Callable[[str], Json]]] = {
    "get_variable": ("variable", "key", get_variable),
    "get_connection": ("connection", "conn_id", get_connection),
}


def name_of(request: Mapping[str, Json]) -> str | None:
    """What a request reads, as ``DagFile.asked`` keeps it ("variable:key"); None for one that is not answered."""
    if request.get("op") not in _READINGS:
        return None
    kind, argument, _ = _READINGS[request["op"]]
    return f"{kind}:{request[argument]}"


def reply(request: Mapping[str, Json]) -> dict[str, Json]:
    """The whole answer to a request; what goes wrong is its ``error``."""
    answer: dict[str, Json] = {"id": request.get("id")}
    if request.get("op") not in _READINGS:
        text = (
            f"{request.get('op')} can be asked while a task runs. While its DAG file is read, only Variables and "
            "Connections can be read: move the call into the task."
        )
        return {**answer, "error": {"type": "NotWhileReading", "message": text}}
    _, argument, read = _READINGS[request["op"]]
    try:
        return {**answer, "ok": read(request[argument])}
    except secrets.SecretError as error:
        return {**answer, "error": {"type": "SecretError", "message": str(error)}}
    except Exception as error:
        # A name that the database's driver refuses, say: it is the file's error, and must not end whoever reads for it.
        if isinstance(error, (db.DatabaseError, db.InterfaceError)):
            db.close()
        return {**answer, "error": {"type": type(error).__name__, "message": str(error).strip()}}
