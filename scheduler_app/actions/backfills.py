"""Backfills: ask for runs of a range of past slots, pause, go on, cancel. The scheduler makes and starts the runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.engine import params, reprocess, states
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.run_plans import RunPlan, slots_between
from scheduler_app.models import Backfill, BackfillSlot, DagModel, DagRun, TaskInstance, Wake, backfill, db, transitions

from . import definitions, journal, permit
from .errors import Conflict, Invalid, Missing, Refused, Unlisted

#: Slots that one backfill may have.
MOST_SLOTS = 20_000
TOO_MANY = f"The range has more than {MOST_SLOTS} slots: ask for it in parts."
#: What helps a DAG whose runs the updates of its assets make, by the kind of its timetable.
_INSTEAD = {
    "asset": "backfill the DAGs that update its assets, or trigger its runs one by one.",
    "partitioned": (
        "backfill the DAGs that update its assets, whose partitions then make its runs, or trigger a run for each"
        " partition_key."
    ),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for. Slots whose logical date lies in [from_date, to_date], as far as they are due."""

    dag_id: str
    from_date: datetime
    to_date: datetime
    reprocess_behavior: str = "none"
    reverse: bool = False
    max_active_runs: int = 10
    conf: dict[str, Any] = field(default_factory=dict)
    run_on_latest_version: bool | None = None


def preview(actor: Actor, wanted: Wanted, now: datetime) -> list[RunPlan]:
    """The slots that would be run, in their order; nothing is changed. Raises as :func:`create`."""
    permit.require(actor, "add", "run")
    permit.dag_checked(actor, wanted.dag_id)
    dag = DagModel.objects.get(pk=wanted.dag_id)
    _check_all(dag, wanted, now)
    if _class_lists(dag):
        raise Unlisted(
            f"Only the timetable class of the DAG {dag.dag_id} can list its slots, and it is asked when the backfill is"
            " made: make it, and pause it to look at them first."
        )
    plans = _slots(dag, wanted, now)
    there = backfill.last_of(dag.dag_id, [plan.logical_date for plan in plans if plan.logical_date is not None])
    return [plan for plan in plans if _would_run(there.get(plan.logical_date), wanted)]  # type: ignore[arg-type]


def partition_keys(dag_id: str) -> Callable[[datetime], str | None]:
    """The key of the partition that a slot is, by when it is due; None for a DAG whose slots are none."""
    dag = DagModel.objects.get(pk=dag_id)
    return definitions.timetable(dag).partition_key


def create(actor: Actor, wanted: Wanted, now: datetime, *, reason: str | None = None) -> Backfill:
    """A new backfill; the scheduler goes on from here. The DAG's row is locked meanwhile.

    Raises Missing, Forbidden; Invalid (a range or a limit that cannot be, an order or a behaviour that the DAG's
    dependence on its past forbids); Refused (params that break their schema); Conflict (one is under way, no schedule).
    """
    permit.require(actor, "add", "run")
    with db.atomic():
        dag = permit.dag_to_change(actor, wanted.dag_id)
        _check_all(dag, wanted, now)
        asked = _class_lists(dag)
        plans = [] if asked else _slots(dag, wanted, now)
        other = Backfill.objects.unfinished().filter(dag=dag).first()
        if other is not None:
            raise Conflict(
                f"Another backfill (id {other.pk}) of the DAG {dag.dag_id} is under way, and there can be one at a"
                " time. Wait for it, or cancel it."
            )
        row = Backfill.objects.create(
            dag=dag,
            from_date=wanted.from_date,
            to_date=wanted.to_date,
            dag_run_conf=wanted.conf,
            reprocess_behavior=wanted.reprocess_behavior,
            reverse=wanted.reverse,
            run_on_latest_version=wanted.run_on_latest_version,
            max_active_runs=wanted.max_active_runs,
            slots_pending=asked,
            created_at=now,
            updated_at=now,
            triggering_user_name=actor.name if actor.kind == "person" else None,
        )
        BackfillSlot.objects.add(row, plans)
        after = {"slots": "asked of the timetable's class" if asked else len(plans)}
        _record(actor, "create_backfill", row, now, reason, after=after)
        db.notify()
    return row


def set_paused(actor: Actor, backfill_id: int, paused: bool, now: datetime, *, reason: str | None = None) -> Backfill:
    """A paused backfill starts no more runs; those that run go on. Doing it again changes nothing.

    Raises Missing, Forbidden, Conflict (it is over).
    """
    with db.atomic():
        row = _to_change(actor, backfill_id)
        if row.is_paused != paused:
            row.is_paused, row.updated_at = paused, now
            row.save(update_fields=["is_paused", "updated_at"])
            event = "pause_backfill" if paused else "unpause_backfill"
            _record(actor, event, row, now, reason, before={"is_paused": not paused}, after={"is_paused": paused})
            db.notify()
    return row


def cancel(actor: Actor, backfill_id: int, now: datetime, *, reason: str | None = None) -> Backfill:
    """Ends a backfill: runs that have not started fail, those that run go on, no more are made.

    Raises Missing, Forbidden, Conflict (it is over).
    """
    with db.atomic():
        row = _to_change(actor, backfill_id)
        waiting = DagRun.objects.filter(backfill_id=row.pk, state=states.QUEUED).order_by("pk")
        runs = list(waiting.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
        words = f"Backfill {row.pk} was cancelled by {actor.name}" + (f": {reason}" if reason else ".")
        open_tasks = TaskInstance.objects.filter(dag_run_id__in=runs).exclude(state__in=states.FINISHED).order_by("pk")
        keys = list(open_tasks.select_for_update(no_key=True, of=("self",)).values_list("pk", flat=True))
        transitions.tasks("mark_skipped", keys, now, wake=False, reason=words)
        transitions.runs("mark_failed", runs, now, state_reason=words)
        Wake.objects.add(runs, "run_marked", now)
        BackfillSlot.objects.filter(backfill=row, outcome__isnull=True).update(outcome="cancelled")
        row.completed_at = row.updated_at = now
        row.save(update_fields=["completed_at", "updated_at"])
        _record(actor, "cancel_backfill", row, now, reason, after={"runs_failed": len(runs)})
        db.notify()
    return row


def _slots(dag: DagModel, wanted: Wanted, now: datetime) -> list[RunPlan]:
    """Every slot of the range that is due, in the order in which they are to run. Raises Invalid for too many."""
    found = slots_between(definitions.timetable(dag), wanted.from_date, wanted.to_date)
    plans = list(itertools.islice(itertools.takewhile(lambda plan: plan.run_after <= now, found), MOST_SLOTS + 1))
    if len(plans) > MOST_SLOTS:
        raise Invalid("to_date", TOO_MANY)
    return plans[::-1] if wanted.reverse else plans


def _class_lists(dag: DagModel) -> bool:
    """Whether the slots are known to the timetable class of the DAG's author alone."""
    return (dag.timetable or {}).get("kind") == "custom"


def _check_all(dag: DagModel, wanted: Wanted, now: datetime) -> None:
    _check(wanted, now)
    if dag.is_stale or dag.latest_version_id is None:
        raise Refused(f"No DAG file defines `{dag.dag_id}` any more, so it cannot be run.")
    graph = definitions.needed(dag.latest_version_id)
    _check_past(graph, wanted)
    wrong = params.resolve(graph.dag.params, wanted.conf).errors
    if wrong:
        raise Refused(" ".join(wrong.values()))
    timetable = definitions.timetable(dag)
    if not timetable.can_be_scheduled or not timetable.periodic:
        raise Conflict(
            f"The DAG {dag.dag_id} has no schedule whose past slots can be listed ({timetable.summary}): "
            + _INSTEAD.get((dag.timetable or {}).get("kind", ""), "trigger its runs one by one.")
        )


def _check(wanted: Wanted, now: datetime) -> None:
    if wanted.to_date < wanted.from_date:
        raise Invalid("to_date", "to_date lies before from_date.")
    if wanted.to_date > now:
        raise Invalid("to_date", "A backfill is about the past: to_date lies in the future.")
    if wanted.max_active_runs < 1:
        raise Invalid("max_active_runs", "max_active_runs is a number from 1 on.")
    if wanted.reprocess_behavior not in backfill.REPROCESS:
        raise Invalid("reprocess_behavior", f"It is one of {', '.join(backfill.REPROCESS)}.")


def _check_past(graph: Graph, wanted: Wanted) -> None:
    """Tasks that depend on their past run in order, and every slot has to have a run that they can wait for."""
    if not any(task.depends_on_past for task in graph.tasks.values()):
        return
    if wanted.reverse:
        raise Invalid("run_backwards", "Some tasks have depends_on_past, so the runs cannot be done backwards.")
    if wanted.reprocess_behavior == "none":
        text = "Some tasks have depends_on_past: reprocess_behavior has to be failed or completed."
        raise Invalid("reprocess_behavior", text)


def _would_run(there: DagRun | None, wanted: Wanted) -> bool:
    outcome = reprocess.of_slot(there.state if there else None, wanted.reprocess_behavior)
    return outcome in (reprocess.CREATED, reprocess.CLEARED)


def _to_change(actor: Actor, backfill_id: int) -> Backfill:
    """A backfill that is under way, its DAG's row and its own locked."""
    permit.require(actor, "change", "run")
    dag_id = (
        Backfill.objects.filter(pk=backfill_id, dag__in=access.dags(actor)).values_list("dag_id", flat=True).first()
    )
    if dag_id is None:
        raise Missing(f"Could not find backfill with id {backfill_id}")
    permit.dag_to_change(actor, dag_id)
    row = Backfill.objects.select_for_update(no_key=True, of=("self",)).get(pk=backfill_id)
    if row.completed_at is not None:
        raise Conflict("Backfill is already completed.")
    return row


def _record(actor: Actor, event: str, row: Backfill, now: datetime, reason: str | None, **changes: Any) -> None:
    extra = {
        "backfill_id": row.pk,
        "from_date": row.from_date.isoformat(),
        "to_date": row.to_date.isoformat(),
        "reprocess_behavior": row.reprocess_behavior,
        "reverse": row.reverse,
        "max_active_runs": row.max_active_runs,
    }
    journal.record(actor, event, now, dag_id=row.dag_id, reason=reason, extra=extra, **changes)
