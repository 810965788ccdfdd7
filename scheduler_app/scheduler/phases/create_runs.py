"""Creates the runs that are due by their schedules (F-15), at most one for each slot whoever tries (S-38).

A DAG that has ``max_active_runs`` unfinished runs is dropped in SQL: that limit, at committed counts, surely refuses
it. Nothing is stored about it, so it comes back by itself when one of them ends (I6, S-33).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from scheduler_app import metrics
from scheduler_app.engine.run_plans import RunPlan, run_id
from scheduler_app.models import DagModel, creation, db, graphs, schedules
from scheduler_app.models.creation import NewRun
from scheduler_app.scheduler.tick import Tick, backoff, error_text

#: DAGs that one pass takes.
DAGS = 100
#: Runs that one pass creates for one DAG that catches up.
RUNS_PER_DAG = 16

_TAKE = """
SELECT d.dag_id, d.max_active_runs - (
    SELECT count(*) FROM scheduler_dag_run r
    WHERE r.dag_id = d.dag_id AND r.state IN ('queued', 'running') AND r.run_type <> 'backfill'
) FROM scheduler_dag d
WHERE d.dag_id IN (
    SELECT dag_id FROM scheduler_dag c
    WHERE NOT is_paused AND NOT is_stale AND next_dagrun_run_after <= %(now)s
      AND (backoff_until IS NULL OR backoff_until <= %(now)s) AND (held_at IS NULL OR held_until <= %(now)s)
      AND (SELECT count(*) FROM scheduler_dag_run r WHERE r.dag_id = c.dag_id AND r.state IN ('queued', 'running')
           AND r.run_type <> 'backfill') < max_active_runs
    ORDER BY next_dagrun_run_after, dag_id LIMIT %(limit)s
)
ORDER BY d.dag_id FOR NO KEY UPDATE OF d SKIP LOCKED
"""
_BLAME = """
UPDATE scheduler_dag SET schedule_failures = schedule_failures + 1, schedule_error = %(error)s,
    backoff_until = %(until)s
WHERE dag_id = %(dag)s RETURNING schedule_failures
"""
_SAVED = (*schedules.NEXT_COLUMNS, *schedules.LAST_COLUMNS, "schedule_error", "schedule_failures", "backoff_until")


@dataclass(slots=True)
class _Planned:
    dag: DagModel
    plans: list[RunPlan] = field(default_factory=list)


def run(tick: Tick) -> int:
    rows = db.fetch(_TAKE, {"now": tick.now, "limit": min(tick.limit, DAGS)})
    room = {dag_id: free for dag_id, free in rows if free > 0}
    tick.working_on = sorted(room)
    dags = DagModel.objects.in_bulk(list(room))
    compiled = graphs.graphs_of(dag.latest_version_id for dag in dags.values() if dag.latest_version_id is not None)
    planned = []
    for dag_id in tick.working_on:
        dag = dags[dag_id]
        if dag.latest_version_id not in compiled:
            raise LookupError(f"The definition of DAG {dag_id} is not stored; it is retried when its file is parsed.")
        planned.append(_plan(dag, min(room[dag_id], RUNS_PER_DAG), tick))
    new = [
        NewRun(
            dag_id=one.dag.dag_id,
            run_id=run_id("scheduled", run_after=plan.run_after, logical_date=plan.logical_date),
            run_type="scheduled",
            run_after=plan.run_after,
            version_id=one.dag.latest_version_id,  # type: ignore[arg-type]
            graph=compiled[one.dag.latest_version_id],  # type: ignore[index]
            logical_date=plan.logical_date,
            data_interval_start=plan.data_interval_start,
            data_interval_end=plan.data_interval_end,
            slot_key=plan.slot_key,
            bundle_version=one.dag.bundle_version,
            creating_job_id=tick.job_id,
        )
        for one in planned
        for plan in one.plans
    ]
    created = [key for key in creation.create_runs(new, tick.now) if key is not None]
    DagModel.objects.bulk_update([one.dag for one in planned], _SAVED)
    metrics.RUNS_CREATED.inc(len(created))
    return len(planned)


def _plan(dag: DagModel, most: int, tick: Tick) -> _Planned:
    """The due slots of one DAG, oldest first, at most so many; the row's columns move on with them."""
    one = _Planned(dag)
    dag.schedule_error, dag.schedule_failures, dag.backoff_until = None, 0, None
    plan = schedules.plan_next(dag, tick.now)
    while plan is not None and plan.run_after <= tick.now and len(one.plans) < most:
        one.plans.append(plan)
        schedules.advance(dag, plan)
        plan = schedules.plan_next(dag, tick.now)
    return one


def blame(tick: Tick, dag_id: object, error: BaseException) -> None:
    """A DAG whose next run cannot be made keeps the error and is left alone for a while; the others go on (S-39)."""
    failures = DagModel.objects.filter(dag_id=dag_id).values_list("schedule_failures", flat=True).first() or 0
    until = backoff(failures, tick.now, tick.rng)
    db.execute(_BLAME, {"dag": dag_id, "error": error_text(error), "until": until})
