"""Holds: somebody stops one run, one task instance or a DAG's new runs, says why, and perhaps until when."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.models import DagModel, DagRun, TaskInstance, Wake, db, locks, transitions

from . import journal, permit
from .errors import Invalid


def hold_run(
    actor: Actor, dag_id: str, run_id: str, now: datetime, *, why: str, until: datetime | None = None
) -> DagRun:
    """No task of the run is started until it is released; what runs goes on, and what is handed out and has not begun
    is taken back. Raises Missing, Forbidden, Invalid."""
    permit.require(actor, "change", "run")
    with db.atomic():
        locks.keep_out_admission()
        run = permit.run_to_change(actor, dag_id, run_id)
        before = _hold(run, actor, why, until, now)
        _take_back(TaskInstance.objects.filter(dag_run=run), now)
        if until is not None:
            run.next_check_at = min(filter(None, (run.next_check_at, until)))
            run.save(update_fields=["next_check_at"])
        journal.record(actor, "hold_dag_run", now, run=run, reason=why, before=before, after=_facts(run))
    return run


def release_run(actor: Actor, dag_id: str, run_id: str, now: datetime, *, why: str = "") -> DagRun:
    """Ends the hold of a run. Raises Missing, Forbidden; a run that is not held stays as it is."""
    permit.require(actor, "change", "run")
    with db.atomic():
        run = permit.run_to_change(actor, dag_id, run_id)
        if run.held_at is not None:
            before = _release(run)
            Wake.objects.add([run.pk], "run_released", now)
            journal.record(actor, "release_dag_run", now, run=run, reason=why, before=before)
            db.notify()
    return run


def hold_task(
    actor: Actor,
    dag_id: str,
    run_id: str,
    task_id: str,
    now: datetime,
    *,
    why: str,
    map_index: int = -1,
    until: datetime | None = None,
) -> TaskInstance:
    """The task instance is not started until it is released; an attempt that runs goes on, a hand-out that has not
    begun is taken back."""
    permit.require(actor, "change", "task")
    with db.atomic():
        locks.keep_out_admission()
        task = permit.task_instance_to_change(actor, dag_id, run_id, task_id, map_index)
        before = _hold(task, actor, why, until, now)
        _take_back(TaskInstance.objects.filter(pk=task.pk), now)
        run = task.dag_run
        if until is not None:
            run.next_check_at = min(filter(None, (run.next_check_at, until)))
            run.save(update_fields=["next_check_at"])
        journal.record(
            actor, "hold_task_instance", now, run=run, task=task, reason=why, before=before, after=_facts(task)
        )
    return task


def release_task(
    actor: Actor, dag_id: str, run_id: str, task_id: str, now: datetime, *, map_index: int = -1, why: str = ""
) -> TaskInstance:
    """Ends the hold of a task instance; one that is not held stays as it is."""
    permit.require(actor, "change", "task")
    with db.atomic():
        task = permit.task_instance_to_change(actor, dag_id, run_id, task_id, map_index)
        if task.held_at is not None:
            before = _release(task)
            Wake.objects.add([task.dag_run_id], "task_released", now, [task.task_id])
            journal.record(actor, "release_task_instance", now, run=task.dag_run, task=task, reason=why, before=before)
            db.notify()
    return task


def hold_new_runs(actor: Actor, dag_id: str, now: datetime, *, why: str, until: datetime | None = None) -> DagModel:
    """The DAG gets no new scheduled runs until it is released; its runs go on (a pause stops them too)."""
    permit.require(actor, "change", "dag")
    with db.atomic():
        dag = permit.dag_to_change(actor, dag_id)
        before = _hold(dag, actor, why, until, now)
        journal.record(actor, "hold_dag", now, dag_id=dag_id, reason=why, before=before, after=_facts(dag))
    return dag


def release_new_runs(actor: Actor, dag_id: str, now: datetime, *, why: str = "") -> DagModel:
    """The schedule of a held DAG goes on."""
    permit.require(actor, "change", "dag")
    with db.atomic():
        dag = permit.dag_to_change(actor, dag_id)
        if dag.held_at is not None:
            before = _release(dag)
            journal.record(actor, "release_dag", now, dag_id=dag_id, reason=why, before=before)
            db.notify()
    return dag


_FIELDS = ("held_at", "held_by", "held_why", "held_until")


def _hold(row: Any, actor: Actor, why: str, until: datetime | None, now: datetime) -> dict[str, Any] | None:
    if not why.strip():
        raise Invalid("why", "Say why: whoever finds it held must know when it may go on.")
    if until is not None and until <= now:
        raise Invalid("until", f"The hold would end at {until.isoformat()}, which is past.")
    before = _facts(row)
    row.held_at, row.held_by, row.held_why, row.held_until = now, actor.name, why.strip(), until
    row.save(update_fields=_FIELDS)
    return before


def _take_back(tasks: QuerySet[TaskInstance], now: datetime) -> None:
    """They are scheduled again, under which no claim of a runner holds; one that begins at this moment runs."""
    queued = tasks.filter(state=states.QUEUED).order_by("pk").values_list("pk", flat=True)
    transitions.tasks("take_back", list(queued), now)


def _release(row: Any) -> dict[str, Any] | None:
    before = _facts(row)
    row.held_at = row.held_by = row.held_why = row.held_until = None
    row.save(update_fields=_FIELDS)
    return before


def _facts(row: Any) -> dict[str, Any] | None:
    if row.held_at is None:
        return None
    until = row.held_until
    return {"held_by": row.held_by, "held_why": row.held_why, "held_until": until.isoformat() if until else None}
