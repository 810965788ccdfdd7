"""Delete task instances: what is left of a task that went from the DAG, or that should be made anew."""

from __future__ import annotations

from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.models import TaskInstance, Wake, db

from . import clear, journal, permit, selection
from .errors import Conflict, Missing


def delete(actor: Actor, wanted: selection.Wanted, now: datetime, *, reason: str | None = None) -> int:
    """Deletes what ``wanted`` selects with its tries; returns how many. A run that goes on makes a task's anew at its
    next look, one that has ended when it is cleared or queued again.

    Raises Missing when nothing is selected, Forbidden, Conflict (an attempt is alive).
    """
    permit.require(actor, "delete", "task")
    with db.atomic():
        permit.dag_checked(actor, wanted.dag_id)
        rows, runs = clear.locked(lambda: selection.picked(actor, wanted))
        if not rows:
            raise Missing("No task instance was found")
        if any(row.state in states.WITH_PROCESS or row.state == states.QUEUED for row in rows):
            raise Conflict("Some of the task instances are queued or running. Mark them first.")
        for run in runs:
            own = [row for row in rows if row.dag_run_id == run.pk]
            if not own:
                continue  # what it had is gone already
            journal.record(
                actor,
                "delete_task_instance",
                now,
                run=run,
                task=own[0] if len(own) == 1 else None,
                reason=reason,
                before={"states": {name: row.state for name, row in zip(journal.names(own), own, strict=False)}},
            )
        TaskInstance.objects.filter(pk__in=[row.pk for row in rows]).delete()
        Wake.objects.add([run.pk for run in runs], "task_deleted", now)
        db.notify()
    return len(rows)
