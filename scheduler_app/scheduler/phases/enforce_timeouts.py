"""Alarms that have come due: runs that took too long end (F-19), deferrals that took too long fail (F-28), and every
other alarm makes its run due for a look.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg2.extras import Json

from scheduler_app.engine import states
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.outcome import timed_out
from scheduler_app.models import Wake, db, facts, graphs, transitions
from scheduler_app.models.facts import RunRow
from scheduler_app.scheduler.cut_short import Cut, cut_short, due_at
from scheduler_app.scheduler.lost import Gone, end_attempts
from scheduler_app.scheduler.tick import Tick, backoff, error_text

_DUE = f"""
SELECT {facts.RUN_ROW} FROM scheduler_dag_run r JOIN scheduler_dag d ON d.dag_id = r.dag_id
WHERE r.state IN ('queued', 'running') AND r.next_check_at <= %(now)s
ORDER BY r.id LIMIT %(limit)s FOR NO KEY UPDATE OF r SKIP LOCKED
"""
_CLEAR_ALARMS = "UPDATE scheduler_dag_run SET next_check_at = NULL WHERE id = ANY(%(runs)s)"
_DEFERRED = """
SELECT ti.id, ti.fence, ti.task_id, r.dag_version_id
FROM scheduler_task_instance ti JOIN scheduler_dag_run r ON r.id = ti.dag_run_id
WHERE ti.state = 'deferred' AND ti.trigger_timeout <= %(now)s
ORDER BY ti.id LIMIT %(limit)s FOR NO KEY UPDATE OF ti SKIP LOCKED
"""
#: What ``resume_execution`` is told; the SDK raises TaskDeferralTimeout for it.
_TIMED_OUT: dict[str, Any] = {"next_method": "__fail__", "next_kwargs": {"error": "Trigger timeout"}}
_BLAME = """
UPDATE scheduler_dag_run SET look_failures = look_failures + 1, look_error = %(error)s, next_check_at = %(until)s
WHERE id = %(run)s
"""


def run(tick: Tick) -> int:
    rows = [RunRow._make(row) for row in db.fetch(_DUE, {"now": tick.now, "limit": tick.limit})]
    tick.working_on = [row.id for row in rows]
    if rows:
        db.execute(_CLEAR_ALARMS, {"runs": tick.working_on})
        compiled, _ = graphs.readable(row.version_id for row in rows if row.version_id is not None)
        late = [row for row in rows if _is_late(row, compiled, tick)]
        known = [(row, compiled[row.version_id]) for row in late if row.version_id is not None]
        cuts = [Cut(row, graph, timed_out(graph)) for row, graph in known]
        cut_short(cuts, tick.now, tick.conf.timed_out_running_tasks)
        late_keys = {row.id for row in late}
        Wake.objects.add([row.id for row in rows if row.id not in late_keys], "alarm", tick.now)
    return len(rows) + _end_deferrals(tick)


def _end_deferrals(tick: Tick) -> int:
    """Fails them in place (S-55); sensors, and others that judge it themselves (soft_fail), are resumed to do so."""
    deferred = db.fetch(_DEFERRED, {"now": tick.now, "limit": tick.limit})
    compiled = graphs.readable(row[3] for row in deferred if row[3] is not None).graphs
    judging, gone = [], []
    for key, fence, task_id, version in deferred:
        task = compiled[version].tasks.get(task_id) if version in compiled else None
        if task is not None and task.judges_deferral:
            judging.append((key, fence))
        else:
            gone.append(Gone(key, fence, "Its deferral timed out."))
    columns = {name: [value] * len(judging) for name, value in _TIMED_OUT.items()}
    columns["next_kwargs"] = [Json(value) for value in columns["next_kwargs"]]
    keys, fences = [key for key, _ in judging], [fence for _, fence in judging]
    moved = transitions.tasks("resume", keys, tick.now, fences=fences, tells=True, **columns) if judging else []
    return len(moved) + end_attempts(gone, tick.now)


def blame(tick: Tick, run_id: object, error: BaseException) -> None:
    """The alarm that cannot be served rings again later."""
    db.execute(_BLAME, {"run": run_id, "error": error_text(error), "until": backoff(0, tick.now, tick.rng)})


def _is_late(row: RunRow, compiled: dict[UUID, Graph], tick: Tick) -> bool:
    graph = compiled.get(row.version_id) if row.version_id is not None else None
    if graph is None or row.state != states.RUNNING:
        return False
    due = due_at(row, graph)
    return due is not None and due <= tick.now
