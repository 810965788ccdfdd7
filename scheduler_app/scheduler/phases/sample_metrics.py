"""Gauges that are read from rows: pools, keyed limits, open task instances, the oldest snapshot (F-26)."""

from __future__ import annotations

from scheduler_app import metrics
from scheduler_app.models import Limit, Pool, db
from scheduler_app.scheduler.tick import Tick

_OLDEST_SNAPSHOT = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0) FROM pg_stat_activity
WHERE datname = current_database() AND backend_xmin IS NOT NULL AND pid <> pg_backend_pid()
"""


def run(tick: Tick) -> int:
    totals: dict[str, int] = dict.fromkeys(("running", "queued", "scheduled", "deferred"), 0)
    for use in Pool.objects.use().values():
        numbers = {
            "open": use.open_slots,
            "running": use.running,
            "queued": use.queued,
            "scheduled": use.scheduled,
            "deferred": use.deferred,
        }
        for name, value in numbers.items():
            metrics.POOL_SLOTS.labels(use.pool, name).set(value)
            if name in totals:
                totals[name] += int(value)
    for state, count in totals.items():
        metrics.TASK_STATES.labels(state).set(count)
    for name, limit in Limit.objects.allowances(tick.now).items():
        metrics.LIMIT_UNITS.labels(name, "amount").set(limit.amount)
        metrics.LIMIT_UNITS.labels(name, "used").set(limit.used)
    metrics.OLDEST_SNAPSHOT.set(float(db.fetch(_OLDEST_SNAPSHOT)[0][0]))
    return 0
