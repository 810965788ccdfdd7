"""New runs and their task instances: the same rows whether a schedule, a person, an asset or a task asked."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from scheduler_app.engine import limits
from scheduler_app.engine.dag import Task
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.task_dates import task_ids_at

from . import db
from .deadline import Deadline


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to insert. ``slot_key`` is set for scheduled runs alone; ``graph`` is that of ``version_id``."""

    dag_id: str
    run_id: str
    run_type: str
    run_after: datetime
    version_id: UUID
    graph: Graph
    logical_date: datetime | None = None
    data_interval_start: datetime | None = None
    data_interval_end: datetime | None = None
    slot_key: str | None = None
    conf: dict[str, Any] = field(default_factory=dict)
    triggered_by: str = "timetable"
    triggering_user_name: str | None = None
    note: str | None = None
    note_by: str | None = None
    bundle_version: str | None = None
    creating_job_id: int | None = None
    backfill_id: int | None = None
    partition_key: str | None = None
    interval_pending: bool = False


_RUN_TYPES = {
    "dag_id": "text",
    "run_id": "text",
    "run_type": "text",
    "run_after": "timestamptz",
    "logical_date": "timestamptz",
    "data_interval_start": "timestamptz",
    "data_interval_end": "timestamptz",
    "slot_key": "text",
    "conf": "jsonb",
    "triggered_by": "text",
    "triggering_user_name": "text",
    "note": "text",
    "note_by": "text",
    "dag_version_id": "uuid",
    "bundle_version": "text",
    "creating_job_id": "bigint",
    "backfill_id": "bigint",
    "partition_key": "text",
    "interval_pending": "boolean",
}
_INSERT_RUNS = (
    "INSERT INTO scheduler_dag_run"
    f" ({', '.join(_RUN_TYPES)}, state, moved_by, queued_at, clear_number, look_failures)"
    f" SELECT {', '.join(_RUN_TYPES)}, 'queued', 'create', %(now)s, 0, 0"
    f" FROM unnest({', '.join(f'%({name})s::{kind}[]' for name, kind in _RUN_TYPES.items())})"
    f" AS r({', '.join(_RUN_TYPES)})"
    " ON CONFLICT DO NOTHING RETURNING dag_id, run_id, id"
)

_TASK_TYPES = {
    "task_id": "text",
    "max_tries": "int",
    "pool": "text",
    "pool_slots": "int",
    "queue": "text",
    "priority_weight": "int",
    "executor": "text",
    "operator_name": "text",
    "max_active_tis_per_dag": "int",
    "max_active_tis_per_dagrun": "int",
    "limits": "text",
}
_SAME_FOR_ALL = (
    "dag_run_id, dag_id, dag_version_id, map_index, state, moved_by, try_number, hostname, unixname, fence,"
    " lost_hand_outs"
)
_INSERT = (
    f"INSERT INTO scheduler_task_instance ({_SAME_FOR_ALL}, {', '.join(_TASK_TYPES)})"
    " SELECT run, %(dag_id)s, %(dag_version_id)s::uuid, -1, NULL, 'create', 0, '', '', 0, 0,"
    f" {', '.join(f't.{name}' for name in _TASK_TYPES)}"
    " FROM unnest(%(runs)s::bigint[]) WITH ORDINALITY AS r(run, nth)"
    f" CROSS JOIN unnest({', '.join(f'%({name})s::{kind}[]' for name, kind in _TASK_TYPES.items())})"
    f" WITH ORDINALITY AS t({', '.join(_TASK_TYPES)}, nth)"
)
_INSERT_TASKS = f"{_INSERT} ORDER BY r.nth, t.nth ON CONFLICT DO NOTHING"
_INSERT_MISSING = (
    f"{_INSERT} WHERE NOT EXISTS (SELECT 1 FROM scheduler_task_instance o"
    " WHERE o.dag_run_id = r.run AND o.task_id = t.task_id)"
    " ORDER BY r.nth, t.nth ON CONFLICT DO NOTHING"
)
#: What is handed out already goes on as it began; a retry that is scheduled keeps the tries that it has left.
_RENEW_TASKS = (
    "WITH open AS MATERIALIZED (SELECT id FROM scheduler_task_instance"
    " WHERE dag_run_id = ANY(%(runs)s::bigint[]) AND task_id = ANY(%(task_id)s::text[])"
    " AND (state IS NULL OR (state = 'scheduled' AND first_start_date IS NULL AND next_method IS NULL))"
    " ORDER BY id FOR NO KEY UPDATE)"
    " UPDATE scheduler_task_instance ti SET dag_version_id = %(dag_version_id)s::uuid,"
    " max_tries = CASE WHEN ti.state IS NULL OR ti.try_number = 0 THEN ti.try_number + t.max_tries"
    " ELSE ti.max_tries END, "
    + ", ".join(f"{name} = t.{name}" for name in _TASK_TYPES if name not in ("task_id", "max_tries"))
    + f" FROM open, unnest({', '.join(f'%({name})s::{kind}[]' for name, kind in _TASK_TYPES.items())})"
    f" AS t({', '.join(_TASK_TYPES)}) WHERE ti.id = open.id AND ti.task_id = t.task_id"
)


def create_runs(new: Sequence[NewRun], now: datetime) -> list[int | None]:
    """Inserts runs (queued) and their task instances; for each the run's primary key.

    None where a run with that id, or for that slot of the schedule, exists already: nothing of it was inserted.
    """
    if not new:
        return []
    params: dict[str, Any] = {
        name: [getattr(run, name) for run in new] for name in _RUN_TYPES if name not in ("dag_version_id", "conf")
    }
    params["dag_version_id"] = [str(run.version_id) for run in new]
    params["conf"] = [json.dumps(run.conf) for run in new]
    inserted = {(row[0], row[1]): row[2] for row in db.fetch(_INSERT_RUNS, {**params, "now": now})}
    keys = [inserted.get((run.dag_id, run.run_id)) for run in new]
    alike: dict[tuple[UUID, tuple[str, ...]], list[int]] = defaultdict(list)
    graphs: dict[UUID, Graph] = {}
    for run, key in zip(new, keys, strict=True):
        if key is not None:
            graphs[run.version_id] = run.graph
            alike[run.version_id, task_ids_at(run.graph, run.logical_date)].append(key)
    for (version_id, task_ids), run_keys in alike.items():
        insert_tasks(run_keys, graphs[version_id], version_id, task_ids)
    made = [(run, key) for run, key in zip(new, keys, strict=True) if key is not None and _has_deadlines(run.graph)]
    if made:
        Deadline.objects.add(made, now)
    return keys


def _has_deadlines(graph: Graph) -> bool:
    return bool(graph.dag.deadline) or graph.dag.has_sla


def insert_tasks(run_keys: Sequence[int], graph: Graph, version_id: UUID, task_ids: Sequence[str]) -> int:
    """One task instance (map index −1, no state) for each of the tasks in each of the runs; existing ones are kept."""
    if not task_ids or not run_keys:
        return 0
    return db.execute(_INSERT_TASKS, _task_params(run_keys, graph, version_id, task_ids))


def insert_missing_tasks(run_keys: Sequence[int], graph: Graph, version_id: UUID, task_ids: Sequence[str]) -> int:
    """As :func:`insert_tasks`, but none for a task that has an instance of any index already."""
    if not task_ids or not run_keys:
        return 0
    return db.execute(_INSERT_MISSING, _task_params(run_keys, graph, version_id, task_ids))


def renew_tasks(run_keys: Sequence[int], graph: Graph, version_id: UUID, task_ids: Sequence[str]) -> int:
    """Gives the instances of these tasks that have not begun this version, and what it says of pool, retries and so on.

    The runs must be locked.
    """
    if not task_ids or not run_keys:
        return 0
    return db.execute(_RENEW_TASKS, _task_params(run_keys, graph, version_id, task_ids))


def _task_params(run_keys: Sequence[int], graph: Graph, version_id: UUID, task_ids: Sequence[str]) -> dict[str, Any]:
    columns = zip(*(task_columns(graph.tasks[task_id], graph) for task_id in task_ids), strict=True)
    params: dict[str, Any] = dict(zip(_TASK_TYPES, map(list, columns), strict=True))
    params |= {"runs": list(run_keys), "dag_id": graph.dag.dag_id, "dag_version_id": str(version_id)}
    return params


def task_columns(task: Task, graph: Graph) -> tuple[Any, ...]:
    """What a task instance copies from its task, in the order of the insert."""
    return (
        task.task_id,
        task.retries,
        task.pool,
        task.pool_slots,
        task.queue,
        graph.weights[task.task_id],
        task.executor,
        task.operator_name,
        task.max_active_tis_per_dag,
        task.max_active_tis_per_dagrun,
        limits.of_documents(task.limits) if task.limits else "",
    )


_EXPAND = """
WITH w AS (SELECT * FROM unnest(%(runs)s::bigint[], %(tasks)s::text[], %(lengths)s::int[]) AS w(run, task, n)),
plain AS MATERIALIZED (
    SELECT ti.id FROM scheduler_task_instance ti JOIN w ON ti.dag_run_id = w.run AND ti.task_id = w.task
    WHERE ti.map_index = -1 AND w.n > 0
      AND NOT EXISTS (SELECT 1 FROM scheduler_task_instance o
                      WHERE o.dag_run_id = w.run AND o.task_id = w.task AND o.map_index = 0)
    ORDER BY ti.id FOR NO KEY UPDATE OF ti
),
first AS (UPDATE scheduler_task_instance ti SET map_index = 0 FROM plain WHERE ti.id = plain.id RETURNING ti.id)
INSERT INTO scheduler_task_instance
    (dag_run_id, dag_id, dag_version_id, map_index, state, moved_by, try_number, hostname, unixname, fence,
     lost_hand_outs, task_id, max_tries, pool, pool_slots, queue, priority_weight, executor, operator_name,
     max_active_tis_per_dag, max_active_tis_per_dagrun, limits)
SELECT ti.dag_run_id, ti.dag_id, ti.dag_version_id, i.nth, NULL, 'create', 0, '', '', 0, 0, ti.task_id, ti.max_tries,
       ti.pool, ti.pool_slots, ti.queue, ti.priority_weight, ti.executor, ti.operator_name,
       ti.max_active_tis_per_dag, ti.max_active_tis_per_dagrun, ti.limits
FROM w
JOIN LATERAL (SELECT * FROM scheduler_task_instance t WHERE t.dag_run_id = w.run AND t.task_id = w.task
              ORDER BY t.map_index LIMIT 1) ti ON true
CROSS JOIN LATERAL generate_series(1, w.n - 1) AS i(nth)
ON CONFLICT DO NOTHING
"""


def expand(expansions: Sequence[tuple[int, str, int]]) -> int:
    """Makes the instances 0 … n−1 of mapped tasks, given as (run key, task id, n > 0); those that exist are kept."""
    if not expansions:
        return 0
    runs, tasks, lengths = (list(column) for column in zip(*expansions, strict=True))
    return db.execute(_EXPAND, {"runs": runs, "tasks": tasks, "lengths": lengths})
