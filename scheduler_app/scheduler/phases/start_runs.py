"""Queued runs start, oldest first, as far as their DAG's ``max_active_runs`` allows (F-16, F-17, I2).

The DAG's row is locked before its running runs are counted, in a statement of its own: two schedulers cannot both see
room for one (S-32, BC-19). A DAG whose row somebody holds is left for the next tick.
"""

from __future__ import annotations

from scheduler_app import metrics
from scheduler_app.models import Wake, db, transitions
from scheduler_app.scheduler.tick import Tick

#: The DAGs that have queued runs (a loose scan over the partial index: its cost follows DAGs, not runs), locked.
_LOCK_DAGS = """
WITH RECURSIVE waiting AS (
    (SELECT dag_id FROM scheduler_dag_run WHERE state = 'queued' ORDER BY dag_id LIMIT 1)
    UNION ALL
    SELECT (SELECT r.dag_id FROM scheduler_dag_run r
            WHERE r.state = 'queued' AND r.dag_id > waiting.dag_id ORDER BY r.dag_id LIMIT 1)
    FROM waiting WHERE waiting.dag_id IS NOT NULL
)
SELECT d.dag_id FROM scheduler_dag d
WHERE d.dag_id IN (SELECT dag_id FROM waiting) AND NOT d.is_paused AND NOT d.is_stale
ORDER BY d.dag_id FOR NO KEY UPDATE SKIP LOCKED
"""

_OLDEST = """
SELECT q.id, q.run_type, q.run_after, q.first_start_date
FROM scheduler_dag d
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM scheduler_dag_run
    WHERE dag_id = d.dag_id AND state = 'running' AND run_type <> 'backfill'
) running
CROSS JOIN LATERAL (
    SELECT id, run_type, run_after, first_start_date FROM scheduler_dag_run
    WHERE dag_id = d.dag_id AND state = 'queued' AND run_after <= %(now)s AND NOT interval_pending
      AND (held_at IS NULL OR held_until <= %(now)s)
    ORDER BY run_after, id LIMIT greatest(0, d.max_active_runs - running.n)
    FOR NO KEY UPDATE SKIP LOCKED
) q
WHERE d.dag_id = ANY(%(dags)s)
ORDER BY q.run_after, q.id LIMIT %(limit)s
"""


def run(tick: Tick) -> int:
    dags = [row[0] for row in db.fetch(_LOCK_DAGS)]
    if not dags:
        return 0
    rows = db.fetch(_OLDEST, {"dags": dags, "now": tick.now, "limit": tick.limit})
    started = transitions.runs("start", sorted(row[0] for row in rows), tick.now)
    Wake.objects.add(started, "run_started", tick.now)
    moved = set(started)
    for key, run_type, run_after, first_start in rows:
        if key in moved and run_type == "scheduled" and first_start is None:
            metrics.SCHEDULE_DELAY.observe(max(0.0, (tick.now - run_after).total_seconds()))
    return len(started)
