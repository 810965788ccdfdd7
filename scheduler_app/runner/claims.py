"""Claim hand-outs: the fenced start of a batch, and all that its ``start`` documents need, in a few statements."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from scheduler_app.engine.dag import Task
from scheduler_app.engine.graph import Graph
from scheduler_app.models import db, transitions
from scheduler_app.models.graphs import graphs_of
from scheduler_app.models.prepared import all_of
from scheduler_app.runner.sources import Source
from scheduler_app.supervisor.zygote import DagFile

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Worker:
    """Who claims: the runner's Job row, and what its rows say of where they ran."""

    job_id: int
    hostname: str
    unixname: str


@dataclass(frozen=True, slots=True)
class Claim:
    """A hand-out that is ours now. ``task`` is None when the run's version of the DAG no longer has it."""

    ti_id: int
    fence: int
    run_pk: int
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    max_tries: int
    task: Task | None
    file: DagFile
    start: dict[str, Any]
    #: of the version that it runs; None when that is not stored
    graph: Graph | None = None
    #: for a machine that takes the file from the database
    source: Source | None = None

    @property
    def label(self) -> str:
        """Names the instance in a line of the log."""
        return f"{self.dag_id}/{self.run_id}/{self.task_id}/{self.map_index}"


_COLUMNS = """
SELECT ti.id, ti.fence, ti.task_id, ti.map_index, ti.try_number, ti.max_tries, ti.queue, ti.pool, ti.start_date,
       ti.first_start_date, ti.hostname, ti.next_method, ti.next_kwargs, ti.priority_weight,
       coalesce(ti.dag_version_id, r.dag_version_id) AS version_id,
       r.id AS run_pk, r.dag_id, r.run_id, r.run_type, r.logical_date, r.data_interval_start, r.data_interval_end,
       r.run_after, r.start_date AS run_start_date, r.end_date AS run_end_date, r.queued_at, r.conf,
       r.state AS run_state, r.note, r.triggering_user_name, r.clear_number, r.partition_key,
       coalesce(r.bundle_version, '') AS bundle_version, d.fileloc, d.relative_fileloc,
       d.bundle_name, coalesce(d.bundle_version, '') AS newest_bundle_version
"""
_ROWS = f"""{_COLUMNS}
FROM (SELECT * FROM unnest(%(ids)s::bigint[]) {all_of("%(ids)s::bigint[]")}) AS w(id)
JOIN scheduler_task_instance ti ON ti.id = w.id
JOIN scheduler_dag_run r ON r.id = ti.dag_run_id
JOIN scheduler_dag d ON d.dag_id = r.dag_id
"""
#: Runs as if each were a task instance without a name: what a callback of a whole run is told.
_RUN_ROWS = f"""{_COLUMNS}
FROM scheduler_dag_run r
LEFT JOIN scheduler_task_instance ti ON false
JOIN scheduler_dag d ON d.dag_id = r.dag_id
WHERE r.id = ANY(%(ids)s::bigint[])
"""
_NO_TASK = {"id": 0, "fence": 0, "task_id": "", "map_index": -1, "try_number": 0, "max_tries": 0, "hostname": ""}

#: A new try begins without the XComs of the one before; a first try can have none. The answer of the start itself;
#: each run and DAG is looked up (OFFSET 0 keeps it so): for a batch the server read all of 20,000 DAGs.
_STARTED = f"""
, forgotten AS (
    DELETE FROM scheduler_xcom x USING moved m
    WHERE m.try_number > 1 AND m.first_start_date = %(now)s
      AND x.dag_run_id = m.dag_run_id AND x.task_id = m.task_id AND x.map_index = m.map_index
)
{_COLUMNS}
FROM moved ti
CROSS JOIN LATERAL (SELECT * FROM scheduler_dag_run WHERE id = ti.dag_run_id OFFSET 0) r
CROSS JOIN LATERAL (SELECT * FROM scheduler_dag WHERE dag_id = r.dag_id OFFSET 0) d
"""
_FORGET_XCOMS_OF = """
DELETE FROM scheduler_xcom x USING scheduler_task_instance ti
WHERE ti.id = ANY(%s::bigint[]) AND ti.try_number > 1
  AND x.dag_run_id = ti.dag_run_id AND x.task_id = ti.task_id AND x.map_index = ti.map_index
"""

_MAP_LENGTHS = """
SELECT ti.dag_run_id, ti.task_id, count(*) FILTER (WHERE ti.map_index >= 0)
FROM unnest(%s::bigint[], %s::text[]) AS w(run, task)
JOIN scheduler_task_instance ti ON ti.dag_run_id = w.run AND ti.task_id = w.task
WHERE coalesce(ti.state, 'none') <> 'removed' GROUP BY ti.dag_run_id, ti.task_id
"""

_CONSUMED_EVENTS = """
SELECT l.dagrun_id, e.id, a.name, a.uri, a.group, e.extra, e.timestamp, e.source_dag_id, e.source_task_id,
       e.source_run_id, e.source_map_index, e.partition_key, e.source_aliases
FROM scheduler_asset_event_run l
JOIN scheduler_asset_event e ON e.id = l.assetevent_id
JOIN scheduler_asset a ON a.id = e.asset_id
WHERE l.dagrun_id = ANY(%s::bigint[]) ORDER BY e.timestamp, e.id
"""


def claim(ids: Sequence[int], fences: Sequence[int], now: datetime, worker: Worker) -> list[Claim]:
    """Starts those hand-outs that are still queued under their fence; the others are left alone. One statement.

    It has committed when they are described: one whose description raises is refused there, and it alone (I5).
    """
    started = transitions.tasks_then(
        _STARTED,
        "start",
        ids,
        now,
        fences=fences,
        job_id=worker.job_id,
        hostname=worker.hostname,
        unixname=worker.unixname,
    )
    try:
        return _described(started)
    except Exception as error:
        if db.is_transient(error):
            raise
        return [described for row in started for described in _described_alone(row, now)]


def _described_alone(row: Mapping[str, Any], now: datetime) -> list[Claim]:
    try:
        return _described([row])
    except Exception as error:
        if db.is_transient(error):
            raise
        log.exception("Hand-out %s of task instance %s cannot be started", row["fence"], row["id"])
        refuse([row["id"]], [row["fence"]], now, f"It cannot be started: {type(error).__name__}: {error}"[:2000])
        return []


def give_back(ids: Sequence[int], fences: Sequence[int], now: datetime) -> None:
    """Hand-outs that never began: they go back to be scheduled."""
    with db.atomic():
        transitions.tasks("unqueue", ids, now, fences=fences)
        db.notify()


def refuse(ids: Sequence[int], fences: Sequence[int], now: datetime, reason: str) -> None:
    """Hand-outs that can never begin."""
    with db.atomic():
        transitions.tasks("fail", ids, now, fences=fences, reason=reason)
        db.notify()


def describe_tasks(ids: Sequence[int]) -> list[Claim]:
    """Task instances as they stand, none of them started: what their callbacks are told."""
    return _described(_rows(_ROWS, ids))


def describe_runs(run_pks: Sequence[int]) -> list[Claim]:
    """Runs as they stand, each with an empty task id: what callbacks of a whole run are told."""
    rows = _rows(_RUN_ROWS, run_pks)
    return _described([row | {name: value for name, value in _NO_TASK.items() if row[name] is None} for row in rows])


def _described(rows: Sequence[Mapping[str, Any]]) -> list[Claim]:
    graphs = graphs_of({row["version_id"] for row in rows if row["version_id"]})
    lengths = _map_lengths(rows, graphs)
    events = _consumed_events(rows)
    return [_claim(row, graphs, lengths, events) for row in rows]


def _rows(sql: str, ids: Sequence[int]) -> list[dict[str, Any]]:
    return db.fetch_named(sql, {"ids": list(ids)}, keep_plan=True)


def forget_xcoms(ti_ids: Sequence[int]) -> None:
    """Deletes what earlier tries of these task instances pushed; for a new try that begins without a hand-out."""
    db.execute(_FORGET_XCOMS_OF, [list(ti_ids)])


def _map_lengths(rows: Sequence[Mapping[str, Any]], graphs: Mapping[UUID, Graph]) -> dict[int, dict[str, int]]:
    """By run: how many instances each mapped upstream task has."""
    wanted: set[tuple[int, str]] = set()
    for row in rows:
        graph = graphs.get(row["version_id"])
        if graph is not None and graph.mapped_tasks:
            mapped = graph.mapped_tasks.intersection(graph.needs.get(row["task_id"], ()))
            wanted.update((row["run_pk"], task_id) for task_id in mapped)
    found: dict[int, dict[str, int]] = {}
    if wanted:
        runs, tasks = zip(*sorted(wanted), strict=True)
        for run_pk, task_id, count in db.fetch(_MAP_LENGTHS, [list(runs), list(tasks)]):
            found.setdefault(run_pk, {})[task_id] = count
    return found


def _consumed_events(rows: Sequence[Mapping[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    runs = sorted({row["run_pk"] for row in rows if row["run_type"].startswith("asset")})
    found: dict[int, list[dict[str, Any]]] = {}
    for row in db.fetch(_CONSUMED_EVENTS, [runs]) if runs else ():
        found.setdefault(row[0], []).append(
            {
                "id": row[1],
                "asset": {"name": row[2], "uri": row[3], "group": row[4]},
                "extra": _json(row[5]),
                "timestamp": iso(row[6]),
                "source_dag_id": row[7],
                "source_task_id": row[8],
                "source_run_id": row[9],
                "source_map_index": row[10],
                "partition_key": row[11],
                "source_aliases": _json(row[12]),
            }
        )
    return found


def _claim(
    row: Mapping[str, Any],
    graphs: Mapping[UUID, Graph],
    lengths: Mapping[int, dict[str, int]],
    events: Mapping[int, list[dict[str, Any]]],
) -> Claim:
    graph = graphs.get(row["version_id"])
    task = graph.tasks.get(row["task_id"]) if graph else None
    return Claim(
        ti_id=row["id"],
        fence=row["fence"],
        run_pk=row["run_pk"],
        dag_id=row["dag_id"],
        run_id=row["run_id"],
        task_id=row["task_id"],
        map_index=row["map_index"],
        try_number=row["try_number"],
        max_tries=row["max_tries"],
        task=task,
        file=dag_file(row["fileloc"], row["relative_fileloc"], row["bundle_version"]),
        start={
            "op": "start",
            "ti": _ti_document(row, task),
            "run": _run_document(row, events),
            "upstream_map_lengths": lengths.get(row["run_pk"], {}),
            "log_url": "",
            "mark_success_url": None,
        },
        graph=graph,
        source=Source(row["bundle_name"], row["relative_fileloc"], row["bundle_version"], row["newest_bundle_version"]),
    )


def dag_file(fileloc: str, relative_fileloc: str, bundle_version: str = "") -> DagFile:
    """The file of a DAG; its folder is what stands before the relative path."""
    folder = fileloc.removesuffix(relative_fileloc).rstrip("/") if relative_fileloc else ""
    return DagFile(fileloc, folder or fileloc.rpartition("/")[0], bundle_version)


def _ti_document(row: Mapping[str, Any], task: Task | None) -> dict[str, Any]:
    return {
        "id": row["id"],
        "dag_id": row["dag_id"],
        "run_id": row["run_id"],
        "task_id": row["task_id"],
        "map_index": row["map_index"],
        "try_number": row["try_number"],
        "max_tries": row["max_tries"],
        "fence": row["fence"],
        "queue": row["queue"],
        "pool": row["pool"],
        "start_date": iso(row["start_date"]),
        "first_start_date": iso(row["first_start_date"]),
        "hostname": row["hostname"],
        "next_method": row["next_method"],
        "next_kwargs": _json(row["next_kwargs"]),
        "priority_weight": row["priority_weight"],
        "task_display_name": (task.task_display_name if task else None) or row["task_id"],
    }


def _run_document(row: Mapping[str, Any], events: Mapping[int, list[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "dag_id": row["dag_id"],
        "run_id": row["run_id"],
        "run_type": row["run_type"],
        "logical_date": iso(row["logical_date"]),
        "data_interval_start": iso(row["data_interval_start"]),
        "data_interval_end": iso(row["data_interval_end"]),
        "run_after": iso(row["run_after"]),
        "start_date": iso(row["run_start_date"]),
        "end_date": iso(row["run_end_date"]),
        "queued_at": iso(row["queued_at"]),
        "conf": _json(row["conf"]) or {},
        "state": row["run_state"],
        "note": row["note"],
        "triggering_user_name": row["triggering_user_name"],
        "consumed_asset_events": events.get(row["run_pk"], []),
        "clear_number": row["clear_number"],
        "partition_key": row["partition_key"],
    }


def iso(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def _json(value: Any) -> Any:
    """A jsonb column from a raw cursor: Django turns off the driver's own decoding."""
    return json.loads(value) if isinstance(value, str) else value
