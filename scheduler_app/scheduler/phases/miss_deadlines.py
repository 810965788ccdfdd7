"""Deadlines whose time has come: those of runs and tasks that are done are dropped, the others are missed, once (F-25).

Time alone asks, so a run that hangs misses its SLA on time and not when it ends (S-48, BC-95). A miss is a stored fact,
a line in the log, a number, and a callback row where the DAG has a callback.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from scheduler_app import metrics
from scheduler_app.engine.addresses import addresses
from scheduler_app.engine.graph import Graph
from scheduler_app.models import Callback, TaskInstance, db, graphs
from scheduler_app.models.effect import MAIL, Wanted
from scheduler_app.scheduler.tick import Tick

log = logging.getLogger("scheduler_app.scheduler")

#: In time is: a run that succeeded by then, a task of which no instance is still to succeed (or be skipped).
_DUE = """
SELECT x.id, x.kind, x.dag_id, x.dag_run_id, r.run_id, r.dag_version_id, x.task_id, x.name, x.due_at, x.callback::text,
       CASE x.kind
       WHEN 'run' THEN NOT (r.state = 'success' AND r.end_date <= x.due_at)
       ELSE EXISTS (SELECT 1 FROM scheduler_task_instance ti
                    WHERE ti.dag_run_id = x.dag_run_id AND ti.task_id = x.task_id
                      AND coalesce(ti.state, 'none') <> 'removed'
                      AND NOT (coalesce(ti.state, 'none') IN ('success', 'skipped') AND ti.end_date <= x.due_at))
       END
FROM scheduler_deadline x JOIN scheduler_dag_run r ON r.id = x.dag_run_id
WHERE x.missed_at IS NULL AND x.due_at <= %(now)s
ORDER BY x.due_at, x.id LIMIT %(limit)s FOR NO KEY UPDATE OF x SKIP LOCKED
"""
_MISS = "UPDATE scheduler_deadline SET missed_at = %(now)s WHERE id = ANY(%(ids)s)"
_DROP = "DELETE FROM scheduler_deadline WHERE id = ANY(%(ids)s)"


class _Due(NamedTuple):
    id: int
    kind: str
    dag_id: str
    run_key: int
    run_id: str
    version_id: UUID | None
    task_id: str | None
    name: str | None
    due_at: datetime
    callback: str | None
    is_missed: bool


def run(tick: Tick) -> int:
    rows = [_Due(*row) for row in db.fetch(_DUE, {"now": tick.now, "limit": tick.limit})]
    if not rows:
        return 0
    missed = [row for row in rows if row.is_missed]
    db.execute(_DROP, {"ids": [row.id for row in rows if not row.is_missed]})
    db.execute(_MISS, {"ids": [row.id for row in missed], "now": tick.now})
    slas: dict[int, list[_Due]] = defaultdict(list)
    for row in missed:
        metrics.DEADLINES_MISSED.labels(row.kind).inc()
        what = f"its SLA for task {row.task_id}" if row.kind == "sla" else f"its deadline {row.name or ''}".rstrip()
        log.warning("Run %s of DAG %s missed %s of %s", row.run_id, row.dag_id, what, row.due_at.isoformat())
        if row.kind == "sla":
            slas[row.run_key].append(row)
    of_runs = [row for row in missed if row.kind == "run"]
    wanted = [_of_run(row) for row in of_runs]
    Callback.objects.want(wanted + _of_slas(slas) + _mails_of_runs(of_runs), tick.now)
    return len(rows)


def _graphs(rows: Iterable[_Due]) -> Mapping[UUID, Graph]:
    return graphs.readable(row.version_id for row in rows if row.version_id is not None).graphs


def _mails_of_runs(rows: Sequence[_Due]) -> list[Wanted]:
    """A deadline of a run is told to the address of its DAG's default arguments."""
    compiled = _graphs(rows)
    wanted = []
    for row in rows:
        graph = compiled.get(row.version_id) if row.version_id is not None else None
        to = addresses(graph.dag.default_args.get("email")) if graph is not None else []
        if to:
            reason = f"The run was not done by {row.due_at:%Y-%m-%d %H:%M:%S} UTC."
            late = {"name": row.name, "due_at": row.due_at.isoformat()}
            kind = f"{MAIL}deadline"
            payload = {"to": to, "reason": reason, "late": late}
            wanted.append(Wanted(kind, f"{kind}:{row.id}", row.dag_id, row.run_key, payload))
    return wanted


def _of_run(row: _Due) -> Wanted:
    late = {
        "id": row.id,
        "name": row.name,
        "due_at": row.due_at.isoformat(),
        "callback": json.loads(row.callback) if row.callback else None,
    }
    reason = f"The run was not done by {row.due_at.isoformat()}."
    return Wanted("deadline", f"deadline:{row.id}", row.dag_id, row.run_key, {"late": late, "reason": reason})


def _of_slas(slas: Mapping[int, Sequence[_Due]]) -> list[Wanted]:
    """One callback for all that a run missed at a time, where its DAG has one, and one mail, where the tasks have
    addresses."""
    compiled = _graphs(rows[0] for rows in slas.values())
    known = {key: compiled[version] for key, rows in slas.items() if (version := rows[0].version_id) in compiled}
    to = {key: _addresses(slas[key], graph) for key, graph in known.items()}
    asking = {key: slas[key] for key, graph in known.items() if "sla_miss" in graph.dag.callbacks or to[key]}
    if not asking:
        return []
    blocking = _not_done(asking)
    calls = [key for key in asking if "sla_miss" in known[key].dag.callbacks]
    mails = [_of_sla(asking[key], blocking[key], to[key]) for key in asking if to[key]]
    return [_of_sla(asking[key], blocking[key], []) for key in calls] + mails


def _addresses(rows: Sequence[_Due], graph: Graph) -> list[str]:
    tasks = [graph.tasks[row.task_id] for row in rows if row.task_id in graph.tasks]
    return sorted({address for task in tasks for address in task.email})


def _of_sla(rows: Sequence[_Due], blocking: list[dict[str, Any]], to: list[str]) -> Wanted:
    """The callback, or with addresses the mail."""
    first = min(row.id for row in rows)
    late = {
        "tasks": [{"task_id": row.task_id, "due_at": row.due_at.isoformat()} for row in rows],
        "blocking": blocking,
    }
    names = ", ".join(sorted(row.task_id or "" for row in rows))
    payload = {"late": late, "reason": f"Not done in time: {names}."} | ({"to": to} if to else {})
    kind = f"{MAIL}sla_miss" if to else "sla_miss"
    return Wanted(kind, f"{kind}:{first}", rows[0].dag_id, rows[0].run_key, payload)


def _not_done(asking: Mapping[int, Sequence[_Due]]) -> dict[int, list[dict[str, Any]]]:
    """Run → its task instances that are not done, by task and index."""
    found: dict[int, list[dict[str, Any]]] = {key: [] for key in asking}
    rows = TaskInstance.objects.filter(dag_run_id__in=found).exclude(state__in=["success", "skipped", "removed"])
    for key, task_id, map_index, state in rows.order_by("dag_run_id", "task_id", "map_index").values_list(
        "dag_run_id", "task_id", "map_index", "state"
    ):
        found[key].append({"task_id": task_id, "map_index": map_index, "state": state})
    return found
