"""The next slot of a DAG's schedule, as columns of its row: a derived value that may be recomputed at any time (I6).

The DAG processor does so on a schedule change, the unpause action when a DAG wakes up, the scheduler after each
creation; all through :func:`plan_next`, so that preview, page and loop agree.
"""

from __future__ import annotations

from datetime import datetime

from scheduler_app.engine.run_plans import RunPlan, ScheduleFacts, next_plan
from scheduler_app.engine.timetable import DataInterval
from scheduler_app.timetables import from_doc

from .dag import DagModel

#: The columns that :func:`plan_next` sets.
NEXT_COLUMNS = (
    "next_dagrun_logical_date",
    "next_dagrun_data_interval_start",
    "next_dagrun_data_interval_end",
    "next_dagrun_run_after",
)
#: The columns that :func:`advance` sets.
LAST_COLUMNS = ("last_slot_logical_date", "last_slot_start", "last_slot_end", "last_slot_run_after")


def schedule_facts(dag: DagModel, now: datetime) -> ScheduleFacts:
    """What the next slot depends on, beside the timetable."""
    last = None
    if dag.last_slot_start is not None and dag.last_slot_end is not None:
        last = DataInterval(dag.last_slot_start, dag.last_slot_end)
    elif dag.last_slot_run_after is not None:
        last = DataInterval.exact(dag.last_slot_run_after)
    return ScheduleFacts(
        last=last,
        last_run_after=dag.last_slot_run_after,
        earliest=dag.start_date,
        latest=dag.end_date,
        catchup=dag.catchup,
        now=now,
        misfire=dag.misfire_policy,  # type: ignore[arg-type]
        misfire_limit=dag.misfire_limit,
        jitter_seconds=dag.schedule_jitter,
        jitter_key=dag.dag_id,
    )


def next_slot(dag: DagModel, now: datetime) -> RunPlan | None:
    """The slot after the last created one; ValueError where the timetable cannot say."""
    timetable = from_doc(dag.timetable or {"kind": "null"})
    return next_plan(timetable, schedule_facts(dag, now)) if timetable.can_be_scheduled else None


def plan_next(dag: DagModel, now: datetime) -> RunPlan | None:
    """Sets the ``next_dagrun_*`` columns of the (unsaved) row."""
    plan = next_slot(dag, now)
    dag.next_dagrun_logical_date = plan.logical_date if plan else None
    dag.next_dagrun_data_interval_start = plan.data_interval_start if plan else None
    dag.next_dagrun_data_interval_end = plan.data_interval_end if plan else None
    dag.next_dagrun_run_after = plan.due if plan else None
    return plan


def advance(dag: DagModel, plan: RunPlan) -> None:
    """Notes on the (unsaved) row that a run was created for this slot; the pointer moves forward only."""
    if dag.last_slot_run_after is not None and plan.run_after <= dag.last_slot_run_after:
        return
    dag.last_slot_logical_date = plan.logical_date
    dag.last_slot_start = plan.data_interval_start
    dag.last_slot_end = plan.data_interval_end
    dag.last_slot_run_after = plan.run_after
