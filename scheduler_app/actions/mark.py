"""Mark task instances as succeeded, failed or skipped by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.models import DagRun, TaskInstance, db, transitions

from . import callbacks_of_marks, clear, journal, permit, selection
from .errors import Conflict, Invalid

#: Target state → the verb that gets there.
VERBS = {states.SUCCESS: "mark_success", states.FAILED: "mark_failed", states.SKIPPED: "mark_skipped"}


def would_change(actor: Actor, wanted: selection.Wanted, state: str, *related: str) -> list[TaskInstance]:
    """The task instances whose state the mark would change: the preview of :func:`mark`."""
    _check(state)
    return [row for row in selection.picked(actor, wanted, *related) if row.state != state]


def mark(
    actor: Actor,
    wanted: selection.Wanted,
    state: str,
    now: datetime,
    *,
    reason: str | None = None,
    expect: Sequence[int] | None = None,
) -> list[TaskInstance]:
    """Marks what ``wanted`` selects and returns the rows that changed. A running attempt is stopped.

    What comes after the tasks that ``wanted`` names and has failed or failed for them (also by this mark) is cleared,
    so that the run is judged anew from here.
    Raises Missing, Forbidden, Invalid (a state that nobody can mark), Conflict (all are in that state, or the
    selection is not the one that ``expect``, a preview's ids, showed).
    """
    _check(state)
    permit.require(actor, "change", "task")
    with db.atomic():
        permit.dag_checked(actor, wanted.dag_id)
        rows, runs = clear.locked(lambda: would_change(actor, wanted, state))
        if not rows:
            raise Conflict(f"Every chosen task instance is already in `{state}` state")
        if expect is not None and sorted(row.pk for row in rows) != sorted(expect):
            raise Conflict("What would be marked changed since the preview. Look at it again.")
        words = f"marked {state} by {actor.name}" + (f": {reason}" if reason else "")
        moved = set(transitions.tasks(VERBS[state], [row.pk for row in rows], now, reason=words))
        callbacks_of_marks.of_tasks([row for row in rows if row.pk in moved], state, words, now)
        _resume_followers(actor, wanted, rows, runs, now)
        _journal(actor, rows, runs, state, reason, now)
        db.notify()
    return list(
        TaskInstance.objects.filter(pk__in=[row.pk for row in rows])
        .select_related("dag_run")
        .order_by("dag_run_id", "task_id", "map_index")
    )


def _check(state: str) -> None:
    if state not in VERBS:
        raise Invalid("new_state", f"'{state}' is not one of {', '.join(VERBS)}")


def _resume_followers(
    actor: Actor, wanted: selection.Wanted, rows: list[TaskInstance], runs: list[DagRun], now: datetime
) -> None:
    named = {row.task_id for row in rows}
    if wanted.tasks is not None:
        named = {task if isinstance(task, str) else task[0] for task in wanted.tasks}
    below = replace(
        wanted,
        tasks=sorted(named),
        runs=[run.run_id for run in runs],
        upstream=False,
        downstream=True,
        past=False,
        future=False,
        only_failed=True,
        only_running=False,
    )
    failed = [row for row in selection.chosen(actor, below) if row.task_id not in named]
    if failed:
        locked = TaskInstance.objects.filter(pk__in=[row.pk for row in failed]).order_by("pk")
        hit = {row.dag_run_id for row in failed}
        clear.apply(
            actor,
            list(locked.select_for_update(no_key=True, of=("self",))),
            [run for run in runs if run.pk in hit],
            now,
            reset_runs=True,
        )


def _journal(
    actor: Actor, rows: list[TaskInstance], runs: list[DagRun], state: str, reason: str | None, now: datetime
) -> None:
    by_run: dict[int, list[TaskInstance]] = {}
    for row in rows:
        by_run.setdefault(row.dag_run_id, []).append(row)
    for run in runs:
        own = by_run.get(run.pk, [])
        journal.record(
            actor,
            "patch_task_instance",
            now,
            run=run,
            task=own[0] if len(own) == 1 else None,
            reason=reason,
            before={"states": {name: row.state for name, row in zip(journal.names(own), own, strict=False)}},
            after={"state": state},
        )
