"""Running task instances whose attempt has been silent for too long: lost, whoever ran them (S-49, BC-51)."""

from __future__ import annotations

from datetime import timedelta

from scheduler_app.models import db
from scheduler_app.scheduler.lost import Gone, end_attempts
from scheduler_app.scheduler.tick import Tick

#: One that lies far ahead was written before the clock was set back, and nobody has beaten since.
_SILENT = """
SELECT id, fence, hostname, pid, heartbeat_at FROM scheduler_task_instance
WHERE state IN ('running', 'restarting') AND (heartbeat_at <= %(before)s OR heartbeat_at > %(ahead)s)
ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED
"""


def run(tick: Tick) -> int:
    timeout = tick.conf.task_heartbeat_timeout_seconds
    before, ahead = tick.now - timedelta(seconds=timeout), tick.now + timedelta(seconds=timeout)
    return end_attempts(
        [
            Gone(key, fence, _reason(pid, host, timeout))
            for key, fence, host, pid, _ in db.fetch(_SILENT, {"before": before, "ahead": ahead, "limit": tick.limit})
        ],
        tick.now,
    )


def _reason(pid: int | None, host: str, timeout: float) -> str:
    return (
        f"Heartbeat lost: its attempt (pid {pid} on {host or 'an unknown host'}) was silent for {timeout:g} s "
        "(task_heartbeat_timeout_seconds). Its machine or its runner is gone, hangs, or does not reach the database."
    )
