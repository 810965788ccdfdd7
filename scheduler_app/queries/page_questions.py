"""What tasks ask people: one task's question, and those that still wait for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from scheduler_app import wire
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance

from .hitl import asking

SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Question:
    instance: TaskInstance
    subject: str
    body: str
    options: Sequence[str]
    multiple: bool
    #: as a DAG's params are declared
    params: dict[str, Any]
    #: names of those who may answer; empty: whoever may change the task
    asked: Sequence[str]
    asked_at: datetime
    answer: dict[str, Any] | None

    @property
    def is_open(self) -> bool:
        return self.answer is None and self.instance.state not in states.FINISHED


def of_task(instance: TaskInstance) -> Question | None:
    """What this task asks or asked; None for most tasks, which ask nothing. One query."""
    row = asking(TaskInstance.objects.filter(pk=instance.pk)).first()
    return None if row is None else _question(row)


def waiting(visible: QuerySet[TaskInstance]) -> list[Question]:
    """The questions that wait for an answer, the oldest first. One query: a task that asks is deferred."""
    rows = asking(visible.filter(state=states.DEFERRED)).filter(is_answered=False)
    return [_question(row) for row in rows.select_related("dag_run").order_by("asked_at", "pk")[:SHOWN]]


def _question(row: Any) -> Question:
    found: dict[str, Any] = wire.plain(row.question)
    users = found.get("assigned_users") or ()
    return Question(
        instance=row,
        subject=str(found.get("subject") or ""),
        body=str(found.get("body") or ""),
        options=list(found["options"]),
        multiple=bool(found.get("multiple")),
        params={name: _declared(value) for name, value in (found.get("params") or {}).items()},
        asked=[str(user.get("name") or user["id"]) for user in users],
        asked_at=row.asked_at,
        answer=wire.plain(row.answer) if row.is_answered else None,
    )


def _declared(value: Any) -> dict[str, Any]:
    """The question keeps the values of its params alone: what is typed is read as what the value is."""
    kinds = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    kind = kinds.get(type(value), "string")
    return {"value": value, "schema": {"type": ["null", kind] if value is None else kind}}
