"""What people do to a whole run: mark it, queue it again, clear it, delete it."""

from __future__ import annotations

from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.engine.task_dates import task_ids_at
from scheduler_app.models import DagRun, TaskInstance, Wake, db, facts, following, transitions
from scheduler_app.models.creation import insert_tasks
from scheduler_app.models.graphs import graph_of

from . import callbacks_of_marks, clear, journal, permit, selection
from .errors import Conflict, Invalid

#: What a run can be marked as → the verb of the run, and that of its running task instances.
_MARKS = {
    states.SUCCESS: ("mark_success", "mark_success"),
    states.FAILED: ("mark_failed", "mark_failed"),
    states.QUEUED: ("mark_queued", None),
}
#: Attempts that have begun: they take the state of the mark. Whatever had not begun is skipped.
_BEGUN = frozenset({states.RUNNING, states.RESTARTING, states.DEFERRED, states.UP_FOR_RESCHEDULE})


def mark_run(actor: Actor, dag_id: str, run_id: str, state: str, now: datetime, *, reason: str | None = None) -> DagRun:
    """Marks a run as success or failed: running attempts are stopped and get that state, the rest is skipped.

    ``queued`` lets the scheduler look at it again. Tear-downs that have not ended yet still run; the run then ends
    by itself after them. Raises Missing, Forbidden, Invalid.
    """
    if state not in _MARKS:
        raise Invalid("state", f"'{state}' is not one of {', '.join(_MARKS)}")
    permit.require(actor, "change", "run")
    run_verb, task_verb = _MARKS[state]
    with db.atomic():
        run = permit.run_to_change(actor, dag_id, run_id)
        before = run.state
        words = f"marked {state} by {actor.name}" + (f": {reason}" if reason else "")
        teardowns = _end_tasks(run, task_verb, words, now) if task_verb else 0
        if teardowns == 0:
            transitions.runs(run_verb, [run.pk], now, **({} if state == states.QUEUED else {"state_reason": words}))
            if state == states.QUEUED:
                following.make_anew([(run.pk, run.logical_date, run.dag_version_id)])
            callbacks_of_marks.of_run(run, state, words, now)
        Wake.objects.add([run.pk], "run_marked", now)
        journal.record(
            actor,
            "patch_dag_run",
            now,
            run=run,
            reason=reason,
            before={"state": before},
            after={"state": state, **({"teardowns_still_to_run": teardowns} if teardowns else {})},
        )
        db.notify()
    run.refresh_from_db()
    return run


def clear_run(
    actor: Actor,
    dag_id: str,
    run_id: str,
    now: datetime,
    *,
    only_failed: bool = False,
    only_new: bool = False,
    latest_version: bool = False,
    note: str | None = None,
    expect: list[int] | None = None,
) -> DagRun:
    """Clears a run's task instances (or the failed ones) and queues it again. ``only_new``: adds the tasks that the
    DAG's newest version has and the run has not, and clears nothing. Raises Missing, Forbidden, Conflict."""
    permit.require(actor, "change", "run")
    with db.atomic():
        run = permit.run_to_change(actor, dag_id, run_id)
        if only_new:
            _add_new_tasks(actor, run, now)
        else:
            wanted = selection.Wanted(dag_id, runs=[run_id], only_failed=only_failed)
            done = clear.clear(actor, wanted, now, latest_version=latest_version, expect=expect, event="clear_dag_run")
            if not done.task_instances and run.state in states.RUN_FINISHED and not only_failed:
                transitions.runs("clear", [run.pk], now)
        if note is not None:
            DagRun.objects.filter(pk=run.pk).update(note=note or None, note_by=actor.name)
        db.notify()
    run.refresh_from_db()
    return run


def clear_runs(
    actor: Actor,
    dag_id: str,
    run_ids: list[str],
    now: datetime,
    *,
    only_failed: bool = False,
    latest_version: bool = False,
    note: str | None = None,
) -> None:
    """As :func:`clear_run`, many runs by the statements of one: 500 took 9,000. Raises the same, and Refused."""
    permit.require(actor, "change", "run")
    with db.atomic():
        wanted = selection.Wanted(dag_id, runs=run_ids, only_failed=only_failed)
        done = clear.clear(actor, wanted, now, latest_version=latest_version, event="clear_dag_run")
        runs = DagRun.objects.filter(dag_id=dag_id, run_id__in=run_ids)
        if not only_failed:
            touched = {row.dag_run_id for row in done.task_instances}
            empty = runs.filter(state__in=states.RUN_FINISHED).exclude(pk__in=touched)
            transitions.runs("clear", list(empty.values_list("pk", flat=True)), now)
        if note is not None:
            runs.update(note=note or None, note_by=actor.name)
        db.notify()


def new_tasks(run: DagRun) -> list[str]:
    """Tasks of the DAG's newest version without an instance in the run: what ``only_new`` would add."""
    if run.dag.latest_version_id is None:
        return []
    graph = graph_of(run.dag.latest_version_id)
    have = set(TaskInstance.objects.filter(dag_run=run).values_list("task_id", flat=True).distinct())
    return [task_id for task_id in task_ids_at(graph, run.logical_date) if task_id not in have]


def delete_run(actor: Actor, dag_id: str, run_id: str, now: datetime, *, reason: str | None = None) -> None:
    """Deletes a run with its task instances, tries and XComs. A running one is a Conflict: mark it first."""
    permit.require(actor, "delete", "run")
    with db.atomic():
        run = permit.run_to_change(actor, dag_id, run_id)
        if run.state == states.RUNNING:
            raise Conflict(
                f"The DagRun with dag_id: `{dag_id}` and run_id: `{run_id}` is running and cannot be deleted."
                " Mark it as success or failed first."
            )
        journal.record(actor, "delete_dag_run", now, run=run, reason=reason, before={"state": run.state})
        if run.logical_date is not None:
            facts.wake_following([run], "run_deleted", now)
        run.delete()
        db.notify()


def _end_tasks(run: DagRun, begun_verb: str, words: str, now: datetime) -> int:
    """Ends what is unfinished, but tear-downs that may still have to run; returns how many of those there are."""
    rows = TaskInstance.objects.filter(dag_run=run).exclude(state__in=[s for s in states.FINISHED if s])
    open_rows = list(rows.order_by("pk").select_for_update(no_key=True, of=("self",)))
    graph = graph_of(run.dag_version_id) if run.dag_version_id else None
    teardowns = {
        row.pk
        for row in open_rows
        if graph
        and row.task_id in graph.tasks
        and graph.tasks[row.task_id].is_teardown
        and run.state == states.RUNNING
        and _set_up(run, row, graph.setups_of[row.task_id])
    }
    begun = [row.pk for row in open_rows if row.state in _BEGUN and row.pk not in teardowns]
    rest = [row.pk for row in open_rows if row.state not in _BEGUN and row.pk not in teardowns]
    transitions.tasks(begun_verb, begun, now, reason=words)
    transitions.tasks("mark_skipped", rest, now, reason=words)
    return len(teardowns)


def _set_up(run: DagRun, row: TaskInstance, setups: tuple[str, ...]) -> bool:
    """Whether there is something to tear down: one of its set-ups has begun."""
    begun = TaskInstance.objects.filter(dag_run=run, task_id__in=setups, first_start_date__isnull=False)
    return row.state in _BEGUN or begun.exists()


def _add_new_tasks(actor: Actor, run: DagRun, now: datetime) -> None:
    fresh = new_tasks(run)
    version_id = run.dag.latest_version_id
    if not fresh or version_id is None:
        return
    insert_tasks([run.pk], graph_of(version_id), version_id, fresh)
    journal.record(actor, "clear_dag_run", now, run=run, after={"new_tasks": fresh})
    if run.state in states.RUN_FINISHED:
        transitions.runs("clear", [run.pk], now, dag_version_id=str(version_id))
    Wake.objects.add([run.pk], "run_cleared", now)
