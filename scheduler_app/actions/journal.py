"""The audit: one row for each action that changed something, written in its transaction (design decision 9)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scheduler_app.access import Actor
from scheduler_app.models import Audit, DagRun, TaskInstance

#: Task instances named one by one in a row; beyond that their number says it.
NAMED = 50


def record(actor: Actor, event: str, now: datetime, **facts: Any) -> None:
    """Writes one line; ``facts`` are those of :func:`line`."""
    line(actor, event, now, **facts).save(force_insert=True)


def write(lines: Sequence[Audit]) -> None:
    """Writes many lines at once."""
    Audit.objects.bulk_create(lines)


def line(
    actor: Actor,
    event: str,
    now: datetime,
    *,
    dag_id: str | None = None,
    run: DagRun | None = None,
    task: TaskInstance | None = None,
    reason: str | None = None,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    extra: dict[str, Any] | None = None,
) -> Audit:
    """Who did what to which object, why, and what it was before. ``before`` and ``after`` hold JSON values."""
    return Audit(
        when=now,
        event=event,
        actor_kind=actor.kind,
        owner=actor.name,
        dag_id=dag_id or (run.dag_id if run else None) or (task.dag_id if task else None),
        run_id=run.run_id if run else None,
        logical_date=run.logical_date if run else None,
        task_id=task.task_id if task else None,
        map_index=task.map_index if task else None,
        try_number=task.try_number if task else None,
        reason=reason or None,
        before=before,
        after=after,
        extra=extra,
    )


def names(rows: list[TaskInstance]) -> list[str]:
    """The first task instances of a selection as ``task`` or ``task[index]``, and how many more there are."""
    shown = [f"{row.task_id}[{row.map_index}]" if row.map_index >= 0 else row.task_id for row in rows[:NAMED]]
    return [*shown, f"and {len(rows) - NAMED} more"] if len(rows) > NAMED else shown
