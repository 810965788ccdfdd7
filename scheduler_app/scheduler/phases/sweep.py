"""The slow safety net: running runs that no wake, alarm or active task will ever make due again.

It only makes them due; the look counts those in which something had been missed (``scheduler_swept_total``). In a
healthy system that counter stays 0, and tests assert that it does.
"""

from __future__ import annotations

from datetime import timedelta

from scheduler_app.models import TaskState, Wake, db
from scheduler_app.scheduler.tick import Tick

#: Nothing of the run is on its way: no wake, no alarm ahead, no task instance that will end by itself.
_FORGOTTEN = """
SELECT r.id FROM scheduler_dag_run r JOIN scheduler_dag d ON d.dag_id = r.dag_id
WHERE r.id > %(after)s AND r.state = 'running' AND r.next_check_at IS NULL AND r.start_date <= %(before)s
  AND NOT d.is_paused AND NOT d.is_stale AND r.held_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM scheduler_wake w WHERE w.dag_run_id = r.id)
  AND NOT EXISTS (SELECT 1 FROM scheduler_task_instance ti WHERE ti.dag_run_id = r.id
                  AND ti.state IN ('scheduled', 'queued', 'running', 'restarting', 'deferred'))
  AND NOT EXISTS (SELECT 1 FROM scheduler_task_instance ti WHERE ti.dag_run_id = r.id
                  AND ti.held_at IS NOT NULL AND ti.state IS NULL)
ORDER BY r.id LIMIT %(limit)s
"""


def run(tick: Tick) -> int:
    """Goes on to the last run: those that wait for their past for good reason hide none behind them (BC-133)."""
    TaskState.objects.delete_expired(tick.now, tick.limit)
    params = {"before": tick.now - timedelta(seconds=tick.conf.sweep_seconds), "limit": tick.limit, "after": 0}
    count = 0
    while True:
        found = [row[0] for row in db.fetch(_FORGOTTEN, params)]
        Wake.objects.add(found, "sweep", tick.now)
        count += len(found)
        if len(found) < tick.limit:
            return count
        params["after"] = found[-1]
