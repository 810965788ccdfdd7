"""Runs that follow the newest version of their DAG (as Airflow does with unversioned bundles): new tasks are added.

Tasks that vanished are removed by the look itself, which sees instances without a task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from scheduler_app.engine.task_dates import task_ids_at
from scheduler_app.models import creation, db, graphs
from scheduler_app.models.facts import RunRow

_MOVE_RUNS = """
UPDATE scheduler_dag_run r SET dag_version_id = w.version
FROM unnest(%(runs)s::bigint[], %(versions)s::uuid[]) AS w(id, version) WHERE r.id = w.id
"""
#: Instances that have not begun follow; ended and active ones keep the version that they began with.
_MOVE_TASKS = """
UPDATE scheduler_task_instance ti SET dag_version_id = w.version
FROM unnest(%(runs)s::bigint[], %(versions)s::uuid[]) AS w(id, version)
WHERE ti.dag_run_id = w.id AND ti.state IS NULL
"""


def follow_newest(rows: Sequence[RunRow], now: datetime) -> dict[int, UUID]:
    """Moves those runs whose DAG has a newer version; run key → that version."""
    behind = {
        row.id: row.latest_version_id
        for row in rows
        if row.latest_version_id is not None and row.latest_version_id != row.version_id
    }
    if not behind:
        return {}
    # one that cannot be read is no newer version: the run goes on with its own
    compiled, _ = graphs.readable(behind.values())
    behind = {run_id: version for run_id, version in behind.items() if version in compiled}
    params = {"runs": list(behind), "versions": [str(version) for version in behind.values()]}
    db.execute(_MOVE_RUNS, params)
    db.execute(_MOVE_TASKS, params)
    alike: dict[tuple[UUID, tuple[str, ...]], list[int]] = defaultdict(list)
    for row in rows:
        if row.id in behind:
            version = behind[row.id]
            alike[version, task_ids_at(compiled[version], row.logical_date)].append(row.id)
    for (version, task_ids), run_ids in alike.items():
        creation.insert_tasks(run_ids, compiled[version], version, task_ids)
    return behind
