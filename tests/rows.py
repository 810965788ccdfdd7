"""Rows for tests and benchmarks: a stored DAG, its runs, their states."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler_app.engine.dag import Dag, to_doc
from scheduler_app.engine.dag_hash import dag_hash
from scheduler_app.engine.graph import Graph
from scheduler_app.models import DagModel, DagRun, DagVersion, Pool, TaskInstance, graphs
from scheduler_app.models.creation import NewRun, create_runs

T0 = datetime(2026, 3, 1, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """An instant after the start of the test's time."""
    return T0 + timedelta(seconds=seconds)


def store(dag: Dag, **fields: Any) -> DagModel:
    """The DAG and its version, unpaused unless ``fields`` says otherwise."""
    document = to_doc(dag)
    row, _ = DagModel.objects.update_or_create(
        dag_id=dag.dag_id,
        defaults={
            "created_at": T0,
            "is_paused": False,
            "max_active_runs": 16 if dag.max_active_runs is None else dag.max_active_runs,
            "max_active_tasks": 16 if dag.max_active_tasks is None else dag.max_active_tasks,
            "timetable": dag.timetable,
            "catchup": dag.catchup,
            **fields,
        },
    )
    version = DagVersion.objects.create(
        dag=row,
        version_number=row.versions.count() + 1,
        dag_hash=dag_hash(document),
        document=document,
        created_at=T0,
    )
    row.latest_version = version
    row.save(update_fields=["latest_version"])
    graphs.remember(version.pk, Graph(dag))
    return row


def trigger(dag: DagModel, count: int = 1, now: datetime = T0, prefix: str = "run", **fields: Any) -> list[DagRun]:
    """Queued manual runs ``<prefix>0 …`` of a stored DAG, a second apart in run_after."""
    assert dag.latest_version_id is not None
    graph = graphs.graph_of(dag.latest_version_id)
    new = [
        NewRun(
            dag_id=dag.dag_id,
            run_id=f"{prefix}{n}",
            run_type="manual",
            run_after=now - timedelta(seconds=count - n),
            version_id=dag.latest_version_id,
            graph=graph,
            triggered_by="test",
            **fields,
        )
        for n in range(count)
    ]
    keys = create_runs(new, now)
    return [DagRun.objects.get(pk=key) for key in keys]


def states(run: DagRun) -> dict[str, str | None]:
    """Task (``task[index]`` when mapped) → state."""
    return {
        task_id if index < 0 else f"{task_id}[{index}]": state
        for task_id, index, state in TaskInstance.objects.filter(dag_run=run)
        .order_by("task_id", "map_index")
        .values_list("task_id", "map_index", "state")
    }


def default_pool(slots: int = 128) -> Pool:
    """The pool of the migration, also where a test's database was emptied."""
    pool, _ = Pool.objects.update_or_create(pool="default_pool", defaults={"slots": slots})
    return pool
