"""Notes that people leave on runs and task instances."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.models import DagRun, TaskInstance, db

from . import journal, permit, selection
from .errors import Missing


def note_run(actor: Actor, dag_id: str, run_id: str, note: str | None, now: datetime) -> DagRun:
    """As :func:`note_runs`, of one run."""
    return note_runs(actor, dag_id, {run_id: note}, now)[0]


def note_runs(actor: Actor, dag_id: str, given: Mapping[str, str | None], now: datetime) -> list[DagRun]:
    """Sets (None or empty: removes) the notes of runs, by run id. Raises Missing, Forbidden."""
    permit.require(actor, "change", "run")
    with db.atomic():
        chosen = permit.runs_to_change(actor, dag_id, list(given))
        lines = []
        for run in chosen:
            before, note = run.note, given[run.run_id]
            run.note, run.note_by = note or None, actor.name if note else None
            after = {"note": run.note}
            lines.append(journal.line(actor, "patch_dag_run", now, run=run, before={"note": before}, after=after))
        DagRun.objects.bulk_update(chosen, ["note", "note_by"])
        journal.write(lines)
    return chosen


def note_tasks(actor: Actor, wanted: selection.Wanted, note: str | None, now: datetime) -> list[TaskInstance]:
    """Sets (None or empty: removes) the note of the chosen task instances and returns them."""
    permit.require(actor, "change", "task")
    with db.atomic():
        permit.dag_checked(actor, wanted.dag_id)
        rows = selection.picked(actor, wanted, "dag_run")
        if not rows:
            raise Missing("No task instance was found")
        keys = [row.pk for row in rows]
        TaskInstance.objects.filter(pk__in=keys).update(note=note or None, note_by=actor.name if note else None)
        first = rows[0]
        journal.record(
            actor,
            "patch_task_instance",
            now,
            run=first.dag_run,
            task=first if len(rows) == 1 else None,
            after={"note": note or None},
            extra={"task_instances": journal.names(rows)},
        )
    return list(TaskInstance.objects.filter(pk__in=keys).order_by("dag_run_id", "task_id", "map_index"))
