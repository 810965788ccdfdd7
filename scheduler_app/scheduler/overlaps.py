"""What becomes of a slot that falls due while ``max_active_runs`` runs of its DAG are under way.

``queue``: it waits for room, as in Airflow. ``skip``: no run is made for it, and the audit says so. ``cancel_oldest``:
the oldest run is cut short and makes room; while its teardowns run, the slot's run waits for them. The DAG's row is
locked meanwhile; a run that somebody else looks at is waited for, not passed over.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_app import access
from scheduler_app.actions import journal
from scheduler_app.engine import states
from scheduler_app.engine.outcome import Outcome
from scheduler_app.engine.run_plans import RunPlan
from scheduler_app.models import DagModel, db, facts, graphs
from scheduler_app.models.facts import RunRow
from scheduler_app.scheduler.cut_short import Cut, cut_short
from scheduler_app.scheduler.tick import Tick

_OLDEST = """
SELECT id FROM scheduler_dag_run
WHERE dag_id = %(dag)s AND state IN ('queued', 'running') AND backfill_id IS NULL AND cut_short_at IS NULL
ORDER BY run_after, id LIMIT 1
"""
_LOCK = f"""
SELECT {facts.RUN_ROW} FROM scheduler_dag_run r JOIN scheduler_dag d ON d.dag_id = r.dag_id
WHERE r.id = %(run)s AND r.state IN ('queued', 'running') FOR NO KEY UPDATE OF r SKIP LOCKED
"""
_SCHEDULER = access.system("scheduler", "scheduler")


def cancel_oldest(dag: DagModel, plan: RunPlan, tick: Tick) -> bool:
    """Cuts the DAG's oldest run short to make room for a slot; False = somebody holds it, so try again soon.

    Raises why the run's definition cannot be read.
    """
    rows = [RunRow._make(row) for (key,) in db.fetch(_OLDEST, {"dag": dag.dag_id}) for row in _locked(key)]
    if not rows:
        tick.again = True
        return False
    (row,) = rows
    if row.version_id is None:
        raise LookupError(f"The definition of {row.run_id} is not stored, so it cannot be ended: delete the run.")
    reason = f"Cancelled for the run of {plan.due:%Y-%m-%d %H:%M:%S} UTC (overlap_policy='cancel_oldest')."
    graph = graphs.graph_of(row.version_id)
    ended = cut_short([Cut(row, graph, Outcome(states.FAILED, "cancelled", reason))], tick.now, states.SKIPPED)
    journal.record(
        _SCHEDULER,
        "cancel_dag_run",
        tick.now,
        dag_id=dag.dag_id,
        reason=reason,
        before={"run_id": row.run_id, "state": row.state},
        after={"run_id": row.run_id, "state": states.FAILED if ended else row.state},
    )
    return True


def record_skipped(dag: DagModel, plans: Sequence[RunPlan], tick: Tick) -> None:
    """One row of the audit for each slot that got no run."""
    many = f"{dag.max_active_runs} runs were" if dag.max_active_runs > 1 else "a run was"
    for plan in plans:
        journal.record(
            _SCHEDULER,
            "skip_scheduled_run",
            tick.now,
            dag_id=dag.dag_id,
            reason=f"No run was made, because {many} under way (overlap_policy='skip').",
            extra={
                "slot": plan.slot_key,
                "logical_date": plan.logical_date.isoformat() if plan.logical_date else None,
            },
        )


def _locked(run: int) -> list[tuple[object, ...]]:
    return db.fetch(_LOCK, {"run": run})
