"""Run a callback again: one that was given up, or one whose effect is wanted once more."""

from __future__ import annotations

from datetime import datetime

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.models import Callback, TaskInstance, db

from . import journal, permit
from .errors import Conflict, Missing


def replay(actor: Actor, callback_id: int, now: datetime, *, reason: str | None = None) -> Callback:
    """Makes a callback due now, as if it had never been tried. Raises Missing, Forbidden, Conflict (it runs)."""
    permit.require(actor, "change", "run")
    with db.atomic():
        row = access.callbacks(actor).filter(pk=callback_id).select_related("dag_run").first()
        if row is None:
            raise Missing(f"The Callback with id: `{callback_id}` was not found")
        permit.dag_checked(actor, row.dag_id)
        before = {"state": row.state, "attempts": row.attempts, "error": row.error}
        if not Callback.objects.replay(row.pk, now):
            raise Conflict("This callback is running. Replay it when it has ended.")
        task = TaskInstance.objects.filter(pk=row.task_instance_id).select_related("dag_run").first()
        journal.record(
            actor,
            "replay_callback",
            now,
            dag_id=row.dag_id,
            run=row.dag_run,
            task=task,
            reason=reason,
            before=before,
            after={"state": "pending", "callback": row.dedupe_key, "kind": row.kind},
        )
    row.refresh_from_db()
    return row
