"""What an attempt pushed and the database does not have yet: written with the next heartbeat or the outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg2.extras import Json

from scheduler_app.models import db

RETURN_KEY = "return_value"


@dataclass(slots=True)
class Buffer:
    """XComs by key (encoded values; a deleted key has the value :data:`DELETED`), and the rendered fields."""

    xcoms: dict[str, Any] = field(default_factory=dict)
    rendered: dict[str, Any] | None = None
    #: length of the return value, when something is mapped over it
    map_length: int | None = None

    @property
    def dirty(self) -> bool:
        return bool(self.xcoms) or self.rendered is not None

    def push(self, key: str, value: Any, map_length: int | None) -> None:
        self.xcoms[key] = value
        if key == RETURN_KEY:
            self.map_length = map_length

    def delete(self, key: str) -> None:
        self.xcoms[key] = DELETED

    def take(self) -> Buffer:
        """What is in it, leaving it empty; :meth:`put_back` when the write failed."""
        taken = Buffer(self.xcoms, self.rendered, self.map_length)
        self.xcoms, self.rendered = {}, None
        return taken

    def put_back(self, taken: Buffer) -> None:
        """Newer values win."""
        self.xcoms = taken.xcoms | self.xcoms
        self.rendered = taken.rendered if self.rendered is None else self.rendered


class _Deleted:
    """A key that was pushed and is deleted again."""


DELETED = _Deleted()


@dataclass(frozen=True, slots=True)
class Owner:
    """The task instance whose buffer it is."""

    ti_id: int
    run_pk: int
    dag_id: str
    task_id: str
    map_index: int


_UPSERT_XCOMS = """
INSERT INTO scheduler_xcom (dag_run_id, dag_id, task_id, map_index, key, value, timestamp)
SELECT w.run, w.dag_id, w.task, w.map_index, w.key, w.value, %(now)s
FROM unnest(%(run)s::bigint[], %(dag_id)s::text[], %(task)s::text[], %(map_index)s::int[], %(key)s::text[],
            %(value)s::jsonb[]) AS w(run, dag_id, task, map_index, key, value)
ON CONFLICT (dag_run_id, task_id, key, map_index) DO UPDATE SET value = excluded.value, timestamp = excluded.timestamp
"""
_DELETE_XCOMS = """
DELETE FROM scheduler_xcom x
USING unnest(%(gone_run)s::bigint[], %(gone_task)s::text[], %(gone_map_index)s::int[], %(gone_key)s::text[])
    AS w(run, task, map_index, key)
WHERE x.dag_run_id = w.run AND x.task_id = w.task AND x.map_index = w.map_index AND x.key = w.key
"""
_UPSERT_RENDERED = """
INSERT INTO scheduler_rendered_fields (task_instance_id, fields)
SELECT * FROM unnest(%(rendered)s::bigint[], %(fields)s::jsonb[])
ON CONFLICT (task_instance_id) DO UPDATE SET fields = excluded.fields
"""


def write(items: Sequence[tuple[Owner, Buffer]], now: datetime, *, then: str = "") -> None:
    """Stores buffers inside the caller's transaction, which holds the rows under their fences.

    One trip to the server, with the statement `then` at its end.
    """
    statements: list[str] = []
    params: dict[str, Any] = {"now": now}
    pushed = [(owner, key, value) for owner, buffer in items for key, value in buffer.xcoms.items()]
    stored = [item for item in pushed if item[2] is not DELETED]
    if stored:
        statements.append(_UPSERT_XCOMS)
        params |= _columns(stored) | {"value": [Json(item[2]) for item in stored]}
    deleted = [item for item in pushed if item[2] is DELETED]
    if deleted:
        statements.append(_DELETE_XCOMS)
        params |= {f"gone_{name}": column for name, column in _columns(deleted).items()}
    rendered = [(owner.ti_id, Json(buffer.rendered)) for owner, buffer in items if buffer.rendered is not None]
    if rendered:
        statements.append(_UPSERT_RENDERED)
        params |= {"rendered": [ti_id for ti_id, _ in rendered], "fields": [fields for _, fields in rendered]}
    if then:
        statements.append(then)
    if statements:
        db.execute(";".join(statements), params)


def _columns(items: Sequence[tuple[Owner, str, Any]]) -> dict[str, list[Any]]:
    return {
        "run": [owner.run_pk for owner, _, _ in items],
        "dag_id": [owner.dag_id for owner, _, _ in items],
        "task": [owner.task_id for owner, _, _ in items],
        "map_index": [owner.map_index for owner, _, _ in items],
        "key": [key for _, key, _ in items],
    }
