"""Runs that move to a newer version of their DAG: running ones do so by themselves (as Airflow does with unversioned
bundles), cleared ones when a person asks for it.

New tasks are added, tasks that came back are taken back, and what has not begun takes over what the version says of its
pool, priority, retries and queue. Tasks that vanished are removed by the look itself, which sees instances without one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from scheduler_app.engine.graph import Graph
from scheduler_app.engine.task_dates import task_ids_at

from . import creation, db, graphs, transitions
from .facts import RunRow

_MOVE_RUNS = """
UPDATE scheduler_dag_run r SET dag_version_id = w.version
FROM unnest(%(runs)s::bigint[], %(versions)s::uuid[]) AS w(id, version) WHERE r.id = w.id
"""
_REMOVED = """
SELECT ti.id FROM unnest(%(runs)s::bigint[], %(tasks)s::text[]) AS w(run, task)
JOIN scheduler_task_instance ti ON ti.dag_run_id = w.run AND ti.task_id = w.task WHERE ti.state = 'removed'
ORDER BY ti.id
"""
#: Open instances with an index of tasks that have none.
_INDEXED = """
SELECT id FROM scheduler_task_instance
WHERE dag_run_id = ANY(%(runs)s::bigint[]) AND task_id = ANY(%(tasks)s::text[]) AND map_index >= 0
  AND (state IS NULL OR state IN ('scheduled', 'up_for_retry', 'up_for_reschedule'))
ORDER BY id
"""


class Moving(NamedTuple):
    """A run, and the version that it is to have."""

    run_id: int
    logical_date: datetime | None
    old: UUID | None
    new: UUID


def follow_newest(rows: Sequence[RunRow], now: datetime) -> dict[int, UUID]:
    """Moves those runs whose DAG has a newer version; run key → that version. The runs must be locked."""
    return move(
        [
            Moving(row.id, row.logical_date, row.version_id, row.latest_version_id)
            for row in rows
            if row.latest_version_id is not None
        ],
        now,
    )


def move(runs: Sequence[Moving], now: datetime) -> dict[int, UUID]:
    """Gives each run its new version and the tasks of that; run key → version of those that moved.

    The runs must be locked, and looked at as a whole afterwards.
    """
    moving = [run for run in runs if run.new != run.old]
    if not moving:
        return {}
    # one that cannot be read is no newer version: the run goes on with its own
    compiled, _ = graphs.readable(version for run in moving for version in (run.new, run.old) if version is not None)
    moving = [run for run in moving if run.new in compiled]
    behind = {run.run_id: run.new for run in moving}
    params = {"runs": list(behind), "versions": [str(version) for version in behind.values()]}
    db.execute(_MOVE_RUNS, params)
    _restore(moving, compiled, now)
    alike: dict[tuple[UUID, tuple[str, ...]], list[int]] = defaultdict(list)
    for run in moving:
        alike[run.new, task_ids_at(compiled[run.new], run.logical_date)].append(run.run_id)
    for (version, task_ids), run_ids in alike.items():
        _renew(run_ids, compiled[version], version, task_ids, now)
    return behind


def _restore(moving: Sequence[Moving], compiled: Mapping[UUID, Graph], now: datetime) -> None:
    """Takes back what was removed because its task had left the DAG (not what a mapping became too short for)."""
    back = [
        (run.run_id, task_id)
        for run in moving
        if run.old in compiled
        for task_id in compiled[run.new].tasks
        if task_id not in compiled[run.old].tasks
    ]
    if not back:
        return
    params = {"runs": [run for run, _ in back], "tasks": [task for _, task in back]}
    # no wake: the look that follows takes in the whole run
    transitions.tasks("restore", [key for (key,) in db.fetch(_REMOVED, params)], now, wake=False)


def _renew(run_ids: Sequence[int], graph: Graph, version: UUID, task_ids: Sequence[str], now: datetime) -> None:
    mapped = [task_id for task_id in task_ids if task_id in graph.mapped_tasks]
    plain = [task_id for task_id in task_ids if task_id not in graph.mapped_tasks]
    indexed = [key for (key,) in db.fetch(_INDEXED, {"runs": list(run_ids), "tasks": plain})]
    transitions.tasks("remove", indexed, now, wake=False, reason="Its task is not mapped any more.")
    creation.insert_tasks(run_ids, graph, version, plain)
    # a mapped task that has its instances needs none without an index
    creation.insert_missing_tasks(run_ids, graph, version, mapped)
    creation.renew_tasks(run_ids, graph, version, list(graph.tasks))


def make_anew(runs: Iterable[tuple[int, datetime | None, UUID | None]]) -> int:
    """Task instances that were deleted, in runs that go on: whatever comes after them would wait for ever.

    One for each task of the run's version that has none, of whatever index; given (run key, logical date, version).
    The runs must be locked. Returns how many were missing.
    """
    having = [(key, at, version) for key, at, version in runs if version is not None]
    compiled, _ = graphs.readable(version for _, _, version in having)
    alike: dict[tuple[UUID, tuple[str, ...]], list[int]] = defaultdict(list)
    for key, logical_date, version in having:
        if version in compiled:
            alike[version, task_ids_at(compiled[version], logical_date)].append(key)
    return sum(
        creation.insert_missing_tasks(keys, compiled[version], version, task_ids)
        for (version, task_ids), keys in alike.items()
    )
