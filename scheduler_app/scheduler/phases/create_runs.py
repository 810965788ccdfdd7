"""Creates the runs that are due by their schedules (F-15), at most one for each slot whoever tries (S-38).

A DAG that has ``max_active_runs`` unfinished runs, and lets its slots wait for them, is dropped in SQL: that limit, at
committed counts, surely refuses it. Nothing is stored about it, so it comes back by itself when one of them ends (I6,
S-33). Its room is counted again under the lock of its row. Each DAG is decided on by itself; one that raises keeps its
error, the others go on (I5).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from scheduler_app import metrics
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.run_plans import RunPlan, run_id
from scheduler_app.models import DagModel, creation, db, graphs, schedules
from scheduler_app.models.creation import NewRun
from scheduler_app.scheduler import overlaps
from scheduler_app.scheduler.tick import Tick, backoff, error_text
from scheduler_app.timetables import from_doc

#: DAGs that one pass takes.
DAGS = 100
#: Runs that one pass creates for one DAG that catches up.
RUNS_PER_DAG = 16
#: Ids that are tried for a slot whose own id another run has.
RUN_IDS_TRIED = 10

#: An array, so that each DAG is found by its key: as a join it was hashed with all the idle ones.
_TAKE = """
SELECT d.dag_id FROM scheduler_dag d
WHERE d.dag_id = ANY(ARRAY(
    SELECT dag_id FROM scheduler_dag c
    WHERE NOT is_paused AND NOT is_stale AND next_dagrun_run_after <= %(now)s
      AND (backoff_until IS NULL OR backoff_until <= %(now)s) AND (held_at IS NULL OR held_until <= %(now)s)
      AND (overlap_policy <> 'queue' OR (
          SELECT count(*) FROM scheduler_dag_run r
          WHERE r.dag_id = c.dag_id AND r.state IN ('queued', 'running') AND r.backfill_id IS NULL
      ) < max_active_runs)
    ORDER BY next_dagrun_run_after, dag_id LIMIT %(limit)s
))
ORDER BY d.dag_id FOR NO KEY UPDATE OF d SKIP LOCKED
"""
#: A run that was cut short makes room where that is what it was cut short for.
_ROOM = """
SELECT d.dag_id, d.max_active_runs - (
    SELECT count(*) FROM scheduler_dag_run r
    WHERE r.dag_id = d.dag_id AND r.state IN ('queued', 'running') AND r.backfill_id IS NULL
      AND (d.overlap_policy <> 'cancel_oldest' OR r.cut_short_at IS NULL)
) FROM scheduler_dag d WHERE d.dag_id = ANY(%(dags)s)
"""
#: Of these slots, the ones that have no run: somebody else's run has the id that theirs would have had.
_UNFILLED = """
SELECT w.nth - 1 FROM unnest(%(dags)s::text[], %(slots)s::text[]) WITH ORDINALITY AS w(dag_id, slot, nth)
WHERE NOT EXISTS (SELECT 1 FROM scheduler_dag_run r WHERE r.dag_id = w.dag_id AND r.slot_key = w.slot)
"""
_BLAME = """
UPDATE scheduler_dag SET schedule_failures = schedule_failures + 1, schedule_error = %(error)s,
    backoff_until = %(until)s
WHERE dag_id = %(dag)s RETURNING schedule_failures
"""
_ABSOLVE = """
UPDATE scheduler_dag SET schedule_failures = 0, schedule_error = NULL, backoff_until = NULL WHERE dag_id = ANY(%(dags)s)
"""
_SAVED = (*schedules.NEXT_COLUMNS, *schedules.LAST_COLUMNS, "schedule_error", "schedule_failures", "backoff_until")


@dataclass(slots=True)
class _Planned:
    dag: DagModel
    plans: list[RunPlan] = field(default_factory=list)
    #: slots that get no run, because of ``overlap_policy``
    skipped: list[RunPlan] = field(default_factory=list)


def run(tick: Tick) -> int:
    if not tick.conf.use_job_schedule:
        return 0
    tick.working_on = [row[0] for row in db.fetch(_TAKE, {"now": tick.now, "limit": min(tick.limit, DAGS)})]
    if not tick.working_on:
        return 0
    room = dict(db.fetch(_ROOM, {"dags": tick.working_on}))
    dags = DagModel.objects.in_bulk(tick.working_on)
    compiled, errors = graphs.readable(d.latest_version_id for d in dags.values() if d.latest_version_id is not None)
    planned: list[_Planned] = []
    new: list[NewRun] = []
    failed: dict[str, Exception] = {}
    for dag_id in tick.working_on:
        try:
            graph = graph_of(dags[dag_id], compiled, errors)
            planned.append(_plan(dags[dag_id], room[dag_id], tick))
            new += [_new_run(dags[dag_id], plan, graph, tick) for plan in planned[-1].plans]
        except Exception as error:
            failed[dag_id] = error
    for one in planned:
        overlaps.record_skipped(one.dag, one.skipped, tick)
    created = _create(new, tick.now)
    DagModel.objects.bulk_update([one.dag for one in planned], _SAVED)
    for dag_id, error in failed.items():
        blame(tick, dag_id, error)
    metrics.RUNS_CREATED.inc(created)
    return len(planned) + len(failed)


def graph_of(dag: DagModel, compiled: Mapping[UUID, Graph], errors: Mapping[UUID, Exception]) -> Graph:
    """The graph of the DAG's newest version; raises why there is none."""
    version = dag.latest_version_id
    if version in errors:
        raise errors[version]
    if version not in compiled:
        raise LookupError(f"The definition of DAG {dag.dag_id} is not stored; it is retried when its file is parsed.")
    return compiled[version]


def _new_run(dag: DagModel, plan: RunPlan, graph: Graph, tick: Tick) -> NewRun:
    return NewRun(
        dag_id=dag.dag_id,
        run_id=run_id("scheduled", run_after=plan.run_after, logical_date=plan.logical_date),
        run_type="scheduled",
        run_after=plan.due,
        version_id=dag.latest_version_id,  # type: ignore[arg-type]
        graph=graph,
        logical_date=plan.logical_date,
        data_interval_start=plan.data_interval_start,
        data_interval_end=plan.data_interval_end,
        slot_key=plan.slot_key,
        bundle_version=dag.bundle_version,
        creating_job_id=tick.job_id,
        partition_key=from_doc(dag.timetable or {"kind": "null"}).partition_key(plan.run_after),
    )


def _create(new: Sequence[NewRun], now: datetime) -> int:
    """Inserts the runs. A slot whose run id somebody else's run has gets the first free number behind it (BC-23)."""
    created = 0
    for number in range(1, RUN_IDS_TRIED + 1):
        keys = creation.create_runs(new, now)
        created += sum(key is not None for key in keys)
        refused = [run for run, key in zip(new, keys, strict=True) if key is None]
        if not refused:
            return created
        params = {"dags": [run.dag_id for run in refused], "slots": [run.slot_key for run in refused]}
        unfilled = [refused[row[0]] for row in db.fetch(_UNFILLED, params)]
        new = [replace(run, run_id=f"{run.run_id.removesuffix(f'_{number - 1}')}_{number}") for run in unfilled]
    return created


def _plan(dag: DagModel, room: int, tick: Tick) -> _Planned:
    """The due slots of one DAG, oldest first, as many as there is room for; the row's columns move on with them."""
    one = _Planned(dag)
    dag.schedule_error, dag.schedule_failures, dag.backoff_until = None, 0, None
    plan = schedules.plan_next(dag, tick.now)
    while plan is not None and plan.due <= tick.now and len(one.plans) + len(one.skipped) < RUNS_PER_DAG:
        if len(one.plans) < room:
            one.plans.append(plan)
        elif dag.overlap_policy == "skip":
            one.skipped.append(plan)
        elif dag.overlap_policy == "cancel_oldest" and not one.plans and overlaps.cancel_oldest(dag, plan, tick):
            one.plans.append(plan)
        else:
            break
        schedules.advance(dag, plan)
        plan = schedules.plan_next(dag, tick.now)
    return one


def blame(tick: Tick, dag_id: object, error: BaseException) -> None:
    """A DAG whose next run cannot be made keeps the error and is left alone for a while; the others go on (S-39)."""
    failures = DagModel.objects.filter(dag_id=dag_id).values_list("schedule_failures", flat=True).first() or 0
    until = backoff(failures, tick.now, tick.rng)
    db.execute(_BLAME, {"dag": dag_id, "error": error_text(error), "until": until})


def absolve(dags: Iterable[DagModel], now: datetime) -> None:
    """DAGs whose assets could be decided on keep no error of an earlier look, but for one whose slot is due as well:
    that error may be the slot's, and goes when it gets its run."""
    healed = [dag.dag_id for dag in dags if dag.schedule_failures and not _is_due(dag, now)]
    if healed:
        db.execute(_ABSOLVE, {"dags": healed})


def _is_due(dag: DagModel, now: datetime) -> bool:
    return dag.next_dagrun_run_after is not None and dag.next_dagrun_run_after <= now
