"""Pauses DAGs whose last runs all failed (``max_consecutive_failed_dag_runs``).

The end of a run only writes that its DAG is due (``models/dag_wake.py``): here the DAG's row is locked first, as I9
asks.
"""

from __future__ import annotations

from scheduler_app import access
from scheduler_app.actions import pause
from scheduler_app.engine import states
from scheduler_app.models import DagModel, db
from scheduler_app.scheduler.tick import Tick

_TAKE = """
SELECT d.dag_id FROM scheduler_dag d WHERE d.dag_id IN (SELECT dag_id FROM scheduler_dag_wake)
ORDER BY d.dag_id LIMIT %(limit)s FOR NO KEY UPDATE OF d SKIP LOCKED
"""
_DROP = "DELETE FROM scheduler_dag_wake WHERE dag_id = ANY(%(dags)s)"
#: Of DAGs that were deleted: nobody will ever take them.
_DROP_ORPHANS = """
DELETE FROM scheduler_dag_wake w WHERE NOT EXISTS (SELECT 1 FROM scheduler_dag d WHERE d.dag_id = w.dag_id)
"""
#: The latest by what they are about, not by when they ended: a cleared old run says nothing of the newest ones.
_LAST = """
SELECT state FROM scheduler_dag_run WHERE dag_id = %(dag)s AND end_date IS NOT NULL AND state IN ('success', 'failed')
ORDER BY coalesce(logical_date, run_after) DESC, id DESC LIMIT %(limit)s
"""
_SCHEDULER = access.system("scheduler", "scheduler")


def run(tick: Tick) -> int:
    dag_ids = [row[0] for row in db.fetch(_TAKE, {"limit": tick.limit})]
    if not dag_ids:
        tick.again = True
        return db.execute(_DROP_ORPHANS)
    tick.working_on = list(dag_ids)
    db.execute(_DROP, {"dags": dag_ids})
    limits = DagModel.objects.unpaused().filter(dag_id__in=dag_ids, max_consecutive_failed_dag_runs__gt=0)
    for dag_id, limit in limits.order_by("dag_id").values_list("dag_id", "max_consecutive_failed_dag_runs"):
        last = [row[0] for row in db.fetch(_LAST, {"dag": dag_id, "limit": limit})]
        if len(last) == limit and set(last) == {states.FAILED}:
            many = f"last {limit} runs" if limit > 1 else "last run"
            reason = f"Its {many} failed (max_consecutive_failed_dag_runs={limit}). Mend it, then unpause it."
            pause.set_paused(_SCHEDULER, dag_id, True, tick.now, reason=reason)
    return len(dag_ids)
