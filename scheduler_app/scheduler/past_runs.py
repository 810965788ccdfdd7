"""Runs whose tasks wait for the run before theirs (``depends_on_past``): who is told, and who makes way for whom.

A run may be running and wait for an older one. When somebody clears that one it is queued, and finds no room while the
one that waits for it counts against ``max_active_runs``: neither would ever go on. The one that waits is queued again;
the older one starts before it, as the order of runs has it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from datetime import datetime

from scheduler_app.engine import states
from scheduler_app.models import db, facts, graphs, transitions
from scheduler_app.models.facts import RunRow

log = logging.getLogger("scheduler_app.scheduler")

#: Of these runs, those whose run before is queued, comes before them in the order of starts, could start, and lacks
#: nothing but room. Runs of a backfill have its room, the others that of the DAG.
_GIVING_WAY = f"""
SELECT r.id, p.run_id
FROM unnest(%(runs)s::bigint[]) AS w(id)
JOIN scheduler_dag_run r ON r.id = w.id
JOIN scheduler_dag d ON d.dag_id = r.dag_id
LEFT JOIN scheduler_backfill b ON b.id = r.backfill_id
CROSS JOIN LATERAL ({facts.PREVIOUS_RUN}) p
WHERE r.cut_short_at IS NULL AND p.state = 'queued' AND p.backfill_id IS NOT DISTINCT FROM r.backfill_id
  AND (p.run_after, p.id) < (r.run_after, r.id) AND p.run_after <= %(now)s AND NOT p.interval_pending
  AND (p.held_at IS NULL OR p.held_until <= %(now)s) AND b.is_paused IS NOT TRUE
  AND coalesce(b.max_active_runs, d.max_active_runs) <= (
      SELECT count(*) FROM scheduler_dag_run x
      WHERE x.dag_id = r.dag_id AND x.state = 'running' AND x.backfill_id IS NOT DISTINCT FROM r.backfill_id
  )
ORDER BY r.id
"""


def changed_beside(rows: Sequence[RunRow], changed: Collection[int]) -> list[RunRow]:
    """Of runs that were not looked at, those that the next one may have waited for: a task of one that had ended was
    marked or cleared, or one that is queued was cleared or released."""
    beside = [row for row in rows if row.state != states.RUNNING and row.id in changed]
    compiled, _ = graphs.readable(row.version_id for row in beside if row.version_id is not None)
    return [row for row in beside if row.version_id in compiled and compiled[row.version_id].has_past_deps]


def wake_next(moved: Sequence[RunRow], now: datetime) -> None:
    """The next running run after each of these is due for a look."""
    facts.wake_following([row for row in moved if row.logical_date is not None], "past_moved", now)


def give_way(waiting: Sequence[RunRow], now: datetime) -> int:
    """Queues those of these runs again that keep the run before them from starting; how many.

    The runs must be locked, and nothing in them can move but by their past.
    """
    found = db.fetch(_GIVING_WAY, {"runs": [row.id for row in waiting], "now": now}) if waiting else []
    reasons = [f"It made way for {before}, which its tasks wait for (depends_on_past)." for _, before in found]
    moved = transitions.runs("give_way", [key for key, _ in found], now, state_reason=reasons)
    rows = {row.id: row for row in waiting}
    for key, before in found:
        log.info("DagRun %s of %s makes way for %s, which it waits for", rows[key].run_id, rows[key].dag_id, before)
    # the one after it may wait for it, and keep it from starting in turn
    wake_next([rows[key] for key in moved], now)
    return len(moved)
