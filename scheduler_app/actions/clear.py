"""Clear task instances: they run again. A preview is :func:`scheduler_app.actions.selection.picked` itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.models import Audit, DagModel, DagRun, TaskInstance, Wake, db, following, transitions
from scheduler_app.models.graphs import readable

from . import journal, permit, selection
from .errors import Conflict


@dataclass(slots=True)
class Cleared:
    """What was done: task instances that will run again, those that are told to stop first, and reset runs."""

    task_instances: list[TaskInstance] = field(default_factory=list)
    restarted: list[int] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)


def clear(
    actor: Actor,
    wanted: selection.Wanted,
    now: datetime,
    *,
    reset_runs: bool = True,
    refuse_running: bool = False,
    latest_version: bool = False,
    note: str | None = None,
    expect: Sequence[int] | None = None,
    event: str = "post_clear_task_instances",
) -> Cleared:
    """Clears what ``wanted`` selects. ``expect``: the ids that a preview showed; Conflict when they are others now.

    A running attempt is told to stop and goes on as a retry (state ``restarting``); with ``refuse_running`` it is a
    Conflict instead. ``reset_runs`` queues finished runs again. Raises Missing, Forbidden, Refused.
    """
    permit.require(actor, "change", "task")
    with db.atomic():
        permit.dag_checked(actor, wanted.dag_id)
        rows, runs = locked(lambda: selection.picked(actor, wanted))
        if expect is not None and sorted(row.pk for row in rows) != sorted(expect):
            raise Conflict("What would be cleared changed since the preview. Look at it again.")
        if refuse_running and any(row.state in states.WITH_PROCESS for row in rows):
            raise Conflict(
                "Some of the task instances are running. Wait for them, or clear without prevent_running_task."
            )
        done = apply(actor, rows, runs, now, reset_runs=reset_runs, latest_version=latest_version)
        _note(actor, rows, note)
        if rows:
            _journal(actor, event, wanted, rows, runs, now)
            db.notify()
    return done


def apply(
    actor: Actor,
    rows: list[TaskInstance],
    runs: list[DagRun],
    now: datetime,
    *,
    reset_runs: bool,
    latest_version: bool = False,
) -> Cleared:
    """Moves locked rows and their runs; for the actions of this package, inside their transaction."""
    retries = _retries(rows)
    alive = [row for row in rows if row.state == states.RUNNING]
    still = [row for row in rows if row.state not in states.WITH_PROCESS]
    done = Cleared(rows)
    done.restarted = transitions.tasks(
        "restart",
        [row.pk for row in alive],
        now,
        max_tries=[_new_max_tries(row, retries) for row in alive],
        reason=f"cleared by {actor.name}",
    )
    transitions.tasks(
        "clear", [row.pk for row in still], now, max_tries=[_new_max_tries(row, retries) for row in still]
    )
    if reset_runs and rows:
        done.runs = _reset(runs, now, latest_version=latest_version)
    return done


def _reset(runs: list[DagRun], now: datetime, *, latest_version: bool) -> list[int]:
    finished = [run for run in runs if run.state in states.RUN_FINISHED]
    moved = transitions.runs("clear", [run.pk for run in finished], now)
    going_on = [run for run in finished if run.pk in moved]
    following.make_anew((run.pk, run.logical_date, run.dag_version_id) for run in going_on)
    if latest_version:
        _move_to_newest(going_on, now)
    Wake.objects.add(moved, "run_cleared", now)
    return moved


def _move_to_newest(runs: list[DagRun], now: datetime) -> None:
    """Also the tasks that the newest version has and the run has not: others may wait for them."""
    newest = dict(DagModel.objects.filter(pk__in={run.dag_id for run in runs}).values_list("pk", "latest_version_id"))
    following.move(
        [
            following.Moving(run.pk, run.logical_date, run.dag_version_id, newest[run.dag_id])
            for run in runs
            if newest[run.dag_id] is not None
        ],
        now,
    )


def locked(choose: Callable[[], list[TaskInstance]]) -> tuple[list[TaskInstance], list[DagRun]]:
    """Locks what a selection picks, runs before task instances (I9), and picks again once the runs stand still:
    somebody else may have acted on them while this waited."""
    keys = {row.dag_run_id for row in choose()}
    runs = list(DagRun.objects.filter(pk__in=keys).order_by("pk").select_for_update(no_key=True, of=("self",)))
    again = [row.pk for row in choose() if row.dag_run_id in keys]
    rows = TaskInstance.objects.filter(pk__in=again).order_by("pk").select_for_update(no_key=True, of=("self",))
    return list(rows), runs


def _retries(rows: list[TaskInstance]) -> dict[int, int]:
    """By row: how often its task may be retried, as its version says (the number it had when that is gone)."""
    graphs = readable({row.dag_version_id for row in rows if row.dag_version_id}).graphs
    found = {}
    for row in rows:
        graph = graphs.get(row.dag_version_id) if row.dag_version_id else None
        task = graph.tasks.get(row.task_id) if graph else None
        found[row.pk] = task.retries if task else 0
    return found


def _new_max_tries(row: TaskInstance, retries: dict[int, int]) -> int:
    """As Airflow counts: the tries it had, and its retries on top."""
    return row.try_number + retries[row.pk] if row.try_number else max(row.max_tries, retries[row.pk])


def _note(actor: Actor, rows: list[TaskInstance], note: str | None) -> None:
    if note is not None:
        keys = [row.pk for row in rows]
        TaskInstance.objects.filter(pk__in=keys).update(note=note or None, note_by=actor.name)


def _journal(
    actor: Actor, event: str, wanted: selection.Wanted, rows: list[TaskInstance], runs: list[DagRun], now: datetime
) -> None:
    by_run: dict[int, list[TaskInstance]] = {}
    for row in rows:
        by_run.setdefault(row.dag_run_id, []).append(row)
    lines = []
    for run in runs:
        own = by_run.get(run.pk, [])
        lines.append(
            journal.line(
                actor,
                event,
                now,
                run=run,
                task=own[0] if len(own) == 1 else None,
                before={"run": run.state, "states": _count(own)},
                after={"cleared": len(own)},
                extra={"task_instances": journal.names(own), "only_failed": wanted.only_failed},
            )
        )
    Audit.objects.bulk_create(lines, batch_size=500)


def _count(rows: list[TaskInstance]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.state or "none"] = counts.get(row.state or "none", 0) + 1
    return counts
