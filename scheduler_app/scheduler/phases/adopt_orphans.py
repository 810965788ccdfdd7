"""Takes over what dead processes left behind (F-27), and whatever was handed out and never began.

A process is dead when its lease ran out, or at once when it was on this machine and is gone. A queued row of a dead
scheduler goes back to be scheduled, and so does one that nobody started in time, whoever owns it; where living workers
serve its queue it is only handed out again, since they may be busy for as long as they like. A *running* row is
judged by its own heartbeat alone, never by its owner (S-49): see ``fail_lost_tasks``.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from scheduler_app import metrics
from scheduler_app.models import db, transitions
from scheduler_app.models.lease import bury_neighbours
from scheduler_app.scheduler.lost import Hopeless, fail_for_good
from scheduler_app.scheduler.tick import Tick

log = logging.getLogger("scheduler_app.scheduler")

#: Hand-outs of one task instance in a row that may be lost before they began; then it fails with that reason.
LOST_HAND_OUTS_LIMIT = 10

#: A heartbeat far ahead is one from before the clock was set back.
_BURY = """
UPDATE scheduler_job SET state = 'failed', end_date = %(now)s
WHERE id IN (SELECT id FROM scheduler_job
             WHERE state = 'running' AND (latest_heartbeat <= %(silent_since)s OR latest_heartbeat > %(ahead)s)
             ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id, job_type, hostname, pid
"""

#: Its message waits for a worker that is busy, or was lost. Handed out again under the same fence, it starts once.
_SAY_AGAIN = """
UPDATE scheduler_task_instance SET handed_out_at = NULL WHERE id IN (
    SELECT ti.id FROM scheduler_task_instance ti JOIN scheduler_job j ON j.id = ti.queued_by_job_id
    WHERE ti.state = 'queued' AND ti.handed_out_at <= %(stuck_since)s AND j.state = 'running'
      AND EXISTS (SELECT 1 FROM scheduler_job w WHERE w.job_type = 'CeleryWorkerJob' AND w.state = 'running'
                  AND w.detail -> 'queues' ? ti.queue)
    ORDER BY ti.id LIMIT %(limit)s FOR NO KEY UPDATE OF ti SKIP LOCKED)
"""

_ORPHANS = """
SELECT ti.id, ti.fence, ti.lost_hand_outs FROM scheduler_task_instance ti
LEFT JOIN scheduler_job j ON j.id = ti.queued_by_job_id
WHERE ti.state = 'queued' AND ((j.id IS NULL OR j.state <> 'running') OR ti.handed_out_at <= %(stuck_since)s)
ORDER BY ti.id LIMIT %(limit)s FOR NO KEY UPDATE OF ti SKIP LOCKED
"""


def run(tick: Tick) -> int:
    bury_neighbours(tick.now)
    lease = timedelta(seconds=tick.conf.lease_seconds)
    silence = {"now": tick.now, "silent_since": tick.now - lease, "ahead": tick.now + lease}
    for job_id, kind, host, pid in db.fetch(_BURY, silence):
        log.warning("%s %s (pid %s on %s) is silent for its whole lease: it counts as dead", kind, job_id, pid, host)
    stuck = tick.now - timedelta(seconds=tick.conf.queued_timeout_seconds)
    db.execute(_SAY_AGAIN, {"stuck_since": stuck, "limit": tick.limit})
    rows = db.fetch(_ORPHANS, {"stuck_since": stuck, "limit": tick.limit})
    given_up = f"It was handed out {LOST_HAND_OUTS_LIMIT} times and never began: is an executor for its queue up?"
    hopeless = [Hopeless(key, given_up) for key, _, lost in rows if lost + 1 >= LOST_HAND_OUTS_LIMIT]
    ended = fail_for_good(hopeless, tick.now)
    again = [(key, fence) for key, fence, lost in rows if lost + 1 < LOST_HAND_OUTS_LIMIT]
    moved = transitions.tasks("unqueue", [key for key, _ in again], tick.now, fences=[fence for _, fence in again])
    metrics.ORPHANS_ADOPTED.inc(len(moved))
    return len(moved) + ended
