"""Queued runs start, oldest first, as far as their DAG's ``max_active_runs`` allows (F-16, F-17, I2).

The DAG's row is locked before its running runs are counted, in a statement of its own: two schedulers cannot both see
room for one (S-32, BC-19). A DAG whose row somebody holds is left for the next tick, and so is a run that somebody
holds, with all younger ones of its DAG (BC-21). Runs of backfills have a phase and a limit of their own
(``run_backfills``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from scheduler_app import metrics
from scheduler_app.models import Wake, db, transitions
from scheduler_app.scheduler.tick import Tick

#: The DAGs that have queued runs (a loose scan over the partial index: its cost follows DAGs, not runs), locked. Those
#: that are full, at committed counts, are not even locked.
_LOCK_DAGS = """
WITH RECURSIVE waiting AS (
    (SELECT dag_id FROM scheduler_dag_run WHERE state = 'queued' AND backfill_id IS NULL ORDER BY dag_id LIMIT 1)
    UNION ALL
    SELECT (SELECT r.dag_id FROM scheduler_dag_run r
            WHERE r.state = 'queued' AND r.backfill_id IS NULL AND r.dag_id > waiting.dag_id
            ORDER BY r.dag_id LIMIT 1)
    FROM waiting WHERE waiting.dag_id IS NOT NULL
)
SELECT d.dag_id FROM scheduler_dag d
WHERE d.dag_id IN (SELECT dag_id FROM waiting) AND NOT d.is_paused AND NOT d.is_stale
  AND (SELECT count(*) FROM scheduler_dag_run r
       WHERE r.dag_id = d.dag_id AND r.state = 'running' AND r.backfill_id IS NULL) < d.max_active_runs
ORDER BY d.dag_id FOR NO KEY UPDATE SKIP LOCKED
"""

_OLDEST = """
SELECT q.id, d.dag_id, q.run_type, q.run_after, q.first_start_date
FROM scheduler_dag d
CROSS JOIN LATERAL (
    SELECT count(*) AS n FROM scheduler_dag_run
    WHERE dag_id = d.dag_id AND state = 'running' AND backfill_id IS NULL
) running
CROSS JOIN LATERAL (
    SELECT id, run_type, run_after, first_start_date FROM scheduler_dag_run
    WHERE dag_id = d.dag_id AND state = 'queued' AND backfill_id IS NULL AND run_after <= %(now)s
      AND NOT interval_pending AND (held_at IS NULL OR held_until <= %(now)s)
    ORDER BY run_after, id LIMIT greatest(0, d.max_active_runs - running.n)
) q
WHERE d.dag_id = ANY(%(dags)s)
ORDER BY q.run_after, q.id LIMIT %(limit)s
"""

_LOCK_RUNS = """
SELECT id FROM scheduler_dag_run WHERE id = ANY(%(runs)s) AND state = 'queued'
ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""


class Queued(NamedTuple):
    """A run that waits, as :func:`start_in_order` takes it."""

    id: int
    dag_id: str
    run_type: str
    run_after: datetime
    first_start_date: datetime | None


def run(tick: Tick) -> int:
    dags = [row[0] for row in db.fetch(_LOCK_DAGS)]
    if not dags:
        return 0
    params = {"dags": dags, "now": tick.now, "limit": tick.limit}
    return start_in_order([Queued(*row) for row in db.fetch(_OLDEST, params)], tick)


def start_in_order(oldest: Sequence[Queued], tick: Tick) -> int:
    """Starts queued runs, given oldest first, for which their DAG (its row is locked) has room; how many."""
    rows = {row.id: row for row in _in_order(oldest)}
    started = transitions.runs("start", sorted(rows), tick.now)
    Wake.objects.add(started, "run_started", tick.now)
    for row in (rows[key] for key in started):
        if row.run_type == "scheduled" and row.first_start_date is None:
            metrics.SCHEDULE_DELAY.observe(max(0.0, (tick.now - row.run_after).total_seconds()))
    return len(started)


def _in_order(oldest: Sequence[Queued]) -> Iterator[Queued]:
    """Those that are ours to start: of each DAG as many as come before the first that somebody else holds."""
    locked = {row[0] for row in db.fetch(_LOCK_RUNS, {"runs": [row.id for row in oldest]})}
    waiting: set[str] = set()
    for row in oldest:
        if row.id not in locked:
            waiting.add(row.dag_id)
        elif row.dag_id not in waiting:
            yield row
