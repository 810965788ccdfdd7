"""Delete task instances: what is left of a task that went from the DAG, or that should be made anew."""

from __future__ import annotations

from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.models import DagRun, TaskInstance, Wake, db

from . import journal, permit, selection
from .errors import Conflict, Missing


def delete(actor: Actor, wanted: selection.Wanted, now: datetime, *, reason: str | None = None) -> int:
    """Deletes what ``wanted`` selects with its tries; returns how many. A run that goes on makes a task's anew.

    Raises Missing when nothing is selected, Forbidden, Conflict (an attempt is alive).
    """
    permit.require(actor, "delete", "task")
    with db.atomic():
        permit.dag_checked(actor, wanted.dag_id)
        keys = [row.pk for row in selection.picked(actor, wanted)]
        locked = TaskInstance.objects.filter(pk__in=keys).order_by("pk")
        rows = list(locked.select_for_update(no_key=True, of=("self",)))
        if not rows:
            raise Missing("No task instance was found")
        if any(row.state in states.WITH_PROCESS or row.state == states.QUEUED for row in rows):
            raise Conflict("Some of the task instances are queued or running. Mark them first.")
        runs = list(DagRun.objects.filter(pk__in={row.dag_run_id for row in rows}).order_by("pk"))
        for run in runs:
            own = [row for row in rows if row.dag_run_id == run.pk]
            journal.record(
                actor,
                "delete_task_instance",
                now,
                run=run,
                task=own[0] if len(own) == 1 else None,
                reason=reason,
                before={"states": {name: row.state for name, row in zip(journal.names(own), own, strict=False)}},
            )
        TaskInstance.objects.filter(pk__in=keys).delete()
        Wake.objects.add([run.pk for run in runs], "task_deleted", now)
        db.notify()
    return len(rows)
