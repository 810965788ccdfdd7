"""What people do to a whole run: mark it, queue it again, clear it, delete it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.engine.task_dates import task_ids_at
from scheduler_app.models import DagRun, TaskInstance, Wake, db, facts, following, graphs, transitions
from scheduler_app.models.creation import insert_tasks

from . import callbacks_of_marks, clear, definitions, journal, permit, selection
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
    """As :func:`mark_runs`, of one run."""
    return mark_runs(actor, dag_id, [run_id], state, now, reason=reason)[0]


def mark_runs(
    actor: Actor, dag_id: str, run_ids: Sequence[str], state: str, now: datetime, *, reason: str | None = None
) -> list[DagRun]:
    """Marks runs as success or failed: running attempts are stopped and get that state, the rest is skipped.

    ``queued`` lets the scheduler look at them again. Tear-downs that have not ended yet still run; the run then ends
    by itself after them. So many statements for 500 runs as for one (they took 5,507). Raises Missing, Forbidden,
    Invalid.
    """
    if state not in _MARKS:
        raise Invalid("state", f"'{state}' is not one of {', '.join(_MARKS)}")
    permit.require(actor, "change", "run")
    run_verb, task_verb = _MARKS[state]
    words = f"marked {state} by {actor.name}" + (f": {reason}" if reason else "")
    with db.atomic():
        chosen = permit.runs_to_change(actor, dag_id, run_ids)
        left = _end_tasks(chosen, task_verb, words, now) if task_verb else {}
        ending = [run for run in chosen if run.pk not in left]
        because = {} if state == states.QUEUED else {"state_reason": words}
        transitions.runs(run_verb, [run.pk for run in ending], now, **because)
        if state == states.QUEUED:
            following.make_anew([(run.pk, run.logical_date, run.dag_version_id) for run in ending])
        callbacks_of_marks.of_runs(ending, state, words, now)
        Wake.objects.add([run.pk for run in chosen], "run_marked", now)
        lines = [
            journal.line(
                actor,
                "patch_dag_run",
                now,
                run=run,
                reason=reason,
                before={"state": run.state},
                after={"state": state, **({"teardowns_still_to_run": left[run.pk]} if run.pk in left else {})},
            )
            for run in chosen
        ]
        journal.write(lines)
        db.notify()
    return permit.in_order(DagRun.objects.filter(pk__in=[run.pk for run in chosen]), dag_id, run_ids)


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
                _begin_anew(actor, [run], now)
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
            empty = runs.filter(state__in=states.RUN_FINISHED).exclude(pk__in=touched).order_by("pk")
            _begin_anew(actor, list(empty.select_for_update(no_key=True, of=("self",))), now)
        if note is not None:
            runs.update(note=note or None, note_by=actor.name)
        db.notify()


def _begin_anew(actor: Actor, ended: list[DagRun], now: datetime) -> None:
    """Ended runs, locked, that have no task instance (any more): those of their tasks are made."""
    transitions.runs("clear", [run.pk for run in ended], now)
    following.make_anew((run.pk, run.logical_date, run.dag_version_id) for run in ended)
    after = {"state": states.QUEUED}
    journal.write(
        [journal.line(actor, "clear_dag_run", now, run=run, before={"state": run.state}, after=after) for run in ended]
    )


def new_tasks(run: DagRun) -> list[str]:
    """Tasks of the DAG's newest version without an instance in the run: what ``only_new`` would add."""
    if run.dag.latest_version_id is None:
        return []
    graph = definitions.needed(run.dag.latest_version_id)
    have = set(TaskInstance.objects.filter(dag_run=run).values_list("task_id", flat=True).distinct())
    return [task_id for task_id in task_ids_at(graph, run.logical_date) if task_id not in have]


def delete_run(actor: Actor, dag_id: str, run_id: str, now: datetime, *, reason: str | None = None) -> None:
    """As :func:`delete_runs`, of one run."""
    delete_runs(actor, dag_id, [run_id], now, reason=reason)


def delete_runs(actor: Actor, dag_id: str, run_ids: Sequence[str], now: datetime, *, reason: str | None = None) -> None:
    """Deletes runs with their task instances, tries and XComs. A running one is a Conflict: mark it first."""
    permit.require(actor, "delete", "run")
    with db.atomic():
        chosen = permit.runs_to_change(actor, dag_id, run_ids)
        for run in chosen:
            if run.state == states.RUNNING:
                raise Conflict(
                    f"The DagRun with dag_id: `{dag_id}` and run_id: `{run.run_id}` is running and cannot be deleted."
                    " Mark it as success or failed first."
                )
        lines = [
            journal.line(actor, "delete_dag_run", now, run=run, reason=reason, before={"state": run.state})
            for run in chosen
        ]
        journal.write(lines)
        facts.wake_following([run for run in chosen if run.logical_date is not None], "run_deleted", now)
        DagRun.objects.filter(pk__in=[run.pk for run in chosen]).delete()
        db.notify()


def _end_tasks(chosen: Sequence[DagRun], begun_verb: str, words: str, now: datetime) -> dict[int, int]:
    """Ends what is unfinished, but tear-downs that may still have to run; run key → how many of those it has."""
    rows = TaskInstance.objects.filter(dag_run__in=chosen).exclude(state__in=[s for s in states.FINISHED if s])
    open_rows = list(rows.order_by("pk").select_for_update(no_key=True, of=("self",)))
    teardowns = _teardowns(chosen, open_rows)
    begun = [row.pk for row in open_rows if row.state in _BEGUN and row.pk not in teardowns]
    rest = [row.pk for row in open_rows if row.state not in _BEGUN and row.pk not in teardowns]
    transitions.tasks(begun_verb, begun, now, reason=words)
    transitions.tasks("mark_skipped", rest, now, reason=words)
    return dict(Counter(row.dag_run_id for row in open_rows if row.pk in teardowns))


def _teardowns(chosen: Sequence[DagRun], open_rows: Sequence[TaskInstance]) -> set[int]:
    """Open tear-downs of running runs that have begun, or have something to tear down: a set-up that has begun."""
    running = {run.pk: run.dag_version_id for run in chosen if run.state == states.RUNNING and run.dag_version_id}
    compiled, _ = graphs.readable(running.values())
    setups: dict[int, tuple[int, tuple[str, ...]]] = {}
    found = set()
    for row in open_rows:
        graph = compiled.get(running[row.dag_run_id]) if row.dag_run_id in running else None
        if graph is None or row.task_id not in graph.tasks or not graph.tasks[row.task_id].is_teardown:
            continue
        if row.state in _BEGUN:
            found.add(row.pk)
        else:
            setups[row.pk] = (row.dag_run_id, graph.setups_of[row.task_id])
    names = {name for _, of_one in setups.values() for name in of_one}
    runs_of_them = {run for run, _ in setups.values()}
    ready = TaskInstance.objects.filter(dag_run__in=runs_of_them, task_id__in=names, first_start_date__isnull=False)
    begun = set(ready.values_list("dag_run_id", "task_id")) if names else set()
    found.update(key for key, (run, of_one) in setups.items() if any((run, name) in begun for name in of_one))
    return found


def _add_new_tasks(actor: Actor, run: DagRun, now: datetime) -> None:
    fresh = new_tasks(run)
    version_id = run.dag.latest_version_id
    if not fresh or version_id is None:
        return
    insert_tasks([run.pk], definitions.needed(version_id), version_id, fresh)
    journal.record(actor, "clear_dag_run", now, run=run, after={"new_tasks": fresh})
    if run.state in states.RUN_FINISHED:
        transitions.runs("clear", [run.pk], now, dag_version_id=str(version_id))
    Wake.objects.add([run.pk], "run_cleared", now)
