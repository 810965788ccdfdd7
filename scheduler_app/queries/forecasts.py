"""What a forecast starts from: the schedules, what tasks usually take, and the slots (``engine.forecast``)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from scheduler_app.engine.forecast import MOST_TASKS, Planned
from scheduler_app.engine.limits import Allowance
from scheduler_app.engine.run_plans import RunPlan, preview
from scheduler_app.models import DagModel, Limit, Pool, db, graphs, schedules
from scheduler_app.timetables import from_doc

#: Of each task, the time that its last successes took, the middle one.
_SECONDS = """
SELECT w.dag_id, t.task_id, percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM t.end_date - t.start_date))
FROM unnest(%(dags)s::text[]) AS w(dag_id)
CROSS JOIN LATERAL (
    SELECT id FROM scheduler_dag_run WHERE dag_id = w.dag_id ORDER BY run_after DESC, id DESC LIMIT %(runs)s
) r
JOIN scheduler_task_instance t ON t.dag_run_id = r.id
WHERE t.state = 'success' AND t.start_date IS NOT NULL AND t.end_date IS NOT NULL
GROUP BY w.dag_id, t.task_id
"""
#: Runs of a DAG whose tasks say what they usually take.
RUNS_ASKED = 20


def planned(dags: Iterable[DagModel], now: datetime, until: datetime, unknown_seconds: float) -> list[Planned]:
    """Each DAG with its slots until then. A task that never succeeded is taken to need ``unknown_seconds``."""
    rows = [dag for dag in dags if dag.latest_version_id is not None]
    compiled = graphs.readable(dag.latest_version_id for dag in rows if dag.latest_version_id is not None).graphs
    usual: dict[str, dict[str, float]] = defaultdict(dict)
    for dag_id, task_id, seconds in db.fetch(_SECONDS, {"dags": [dag.dag_id for dag in rows], "runs": RUNS_ASKED}):
        usual[dag_id][task_id] = float(seconds)
    found = []
    for dag in rows:
        graph = compiled.get(dag.latest_version_id) if dag.latest_version_id is not None else None
        plans = _slots(dag, now, until)
        if graph is not None and plans:
            seconds = {task_id: usual[dag.dag_id].get(task_id, unknown_seconds) for task_id in graph.tasks}
            found.append(
                Planned(
                    graph,
                    plans,
                    dag.max_active_runs,
                    dag.max_active_tasks,
                    seconds,
                    misfire=dag.misfire_policy or ("all" if dag.catchup else "latest"),  # type: ignore[arg-type]
                    misfire_limit=dag.misfire_limit,
                    overlap=dag.overlap_policy,
                )
            )
    return found


def _slots(dag: DagModel, now: datetime, until: datetime) -> list[RunPlan]:
    """By the function of the loop. A schedule that cannot say is left out; the DAG's page tells why."""
    try:
        timetable = from_doc(dag.timetable or {"kind": "null"})
        if not timetable.can_be_scheduled:
            return []
        count = 16
        while True:
            plans = preview(timetable, schedules.schedule_facts(dag, now), count)
            if len(plans) < count or plans[-1].run_after > until or count > MOST_TASKS:
                return [plan for plan in plans if plan.run_after <= until]
            count *= 4
    except ValueError:
        return []


def limits() -> dict[str, Allowance]:
    """Every keyed limit, unused. One query."""
    rows = Limit.objects.values_list("name", "amount", "per_seconds")
    return {name: Allowance(amount, per_seconds) for name, amount, per_seconds in rows}


def pool_slots() -> dict[str, int]:
    """Slots of every pool, -1 = without limit. One query."""
    return dict(Pool.objects.values_list("pool", "slots"))
