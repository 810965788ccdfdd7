"""Rows for the pages: DAGs with versions, runs with task instances in chosen states, logs. No scheduler runs here."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scheduler_app import attempt_log
from scheduler_app.engine.dag import Dag, Group, Task, to_doc
from scheduler_app.models import DagModel, DagRun, DagTag, DagVersion, Job, TaskInstance
from tests.shapes import shape

NOW = datetime(2030, 1, 31, 12, 0, tzinfo=UTC)


def spec(dag_id: str, text: str = "extract >> [clean, check] >> load", **fields: Any) -> Dag:
    """A DAG document from a line of text, of Python tasks with two retries."""
    return shape(text, dag_id, {"*": {"operator_name": "PythonOperator", "retries": 2}}, **fields)


def make_dag(
    dag_id: str, document: Dag | None = None, now: datetime = NOW, tags: Iterable[str] = (), **fields: Any
) -> DagModel:
    """A stored DAG with its first version."""
    document = document or spec(dag_id)
    values = {"dag_display_name": dag_id, "is_paused": False, "owners": "data", "created_at": now, "timezone": "UTC"}
    values |= {"relative_fileloc": f"{dag_id}.py", "fileloc": f"/dags/{dag_id}.py", "last_parsed_time": now}
    dag = DagModel.objects.create(dag_id=dag_id, **(values | fields))
    version = DagVersion.objects.create(
        dag=dag, version_number=1, dag_hash=dag_id, document=to_doc(document), created_at=now
    )
    dag.latest_version = version
    dag.save(update_fields=["latest_version"])
    DagTag.objects.bulk_create([DagTag(dag=dag, name=name) for name in tags])
    return dag


def make_run(
    dag: DagModel,
    run_id: str = "manual__1",
    state: str = "running",
    states: dict[str, str | None] | None = None,
    at: datetime = NOW,
    seconds: float = 60.0,
    **fields: Any,
) -> DagRun:
    """A run with one task instance for each task of the DAG; ``states`` says the state of each, None by default."""
    started = at if state != "queued" else None
    ended = at + timedelta(seconds=seconds) if state in ("success", "failed") else None
    values = {"run_type": "manual", "run_after": at, "logical_date": at, "queued_at": at, "triggered_by": "ui"}
    values |= {"start_date": started, "end_date": ended, "dag_version": dag.latest_version}
    run = DagRun.objects.create(dag=dag, run_id=run_id, state=state, **(values | fields))
    chosen = states or {}
    TaskInstance.objects.bulk_create(
        [
            _instance(run, task["task_id"], chosen.get(task["task_id"]), at, seconds)
            for task in dag.latest_version.document["tasks"]
        ]
    )
    return run


def _instance(run: DagRun, task_id: str, state: str | None, at: datetime, seconds: float) -> TaskInstance:
    begun = state in ("success", "failed", "running", "up_for_retry", "deferred", "restarting")
    ended = state in ("success", "failed", "up_for_retry")
    return TaskInstance(
        dag_run=run,
        dag_id=run.dag_id,
        dag_version_id=run.dag_version_id,
        task_id=task_id,
        state=state,
        try_number=1 if begun else 0,
        max_tries=2,
        operator_name="PythonOperator",
        start_date=at if begun else None,
        end_date=at + timedelta(seconds=seconds / 2) if ended else None,
        next_at=at + timedelta(minutes=5) if state == "up_for_retry" else None,
        hostname="worker-1" if begun else "",
        pid=4411 if begun else None,
        reason="KeyError: 'fx'" if state == "failed" else None,
        queued_when=at,
        scheduled_when=at,
    )


def make_log(folder: Path, instance: TaskInstance, lines: Iterable[dict[str, Any]], try_number: int = 1) -> Path:
    """Writes the log file of a try."""
    file = attempt_log.path(
        folder, instance.dag_id, instance.dag_run.run_id, instance.task_id, instance.map_index, try_number
    )
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def log_lines(count: int, at: datetime = NOW) -> list[dict[str, Any]]:
    """Plausible lines, the last of them an exception."""
    lines: list[dict[str, Any]] = [
        {
            "timestamp": (at + timedelta(seconds=number)).isoformat(),
            "level": "warning" if number % 7 == 5 else "info",
            "logger": "task",
            "event": f"read partition {number} of {count}"
            if number % 7 != 5
            else f"partition {number} has 12 null keys",
        }
        for number in range(count)
    ]
    frame = {"filename": "/dags/sales.py", "lineno": 41, "name": "load", "line": 'rate = rates["fx"]'}
    detail = {"exc_type": "KeyError", "exc_value": "'fx'", "exc_notes": [], "is_cause": False, "frames": [frame]}
    lines.append(
        {
            "timestamp": (at + timedelta(seconds=count)).isoformat(),
            "level": "error",
            "logger": "task",
            "event": "The task failed",
            "error_detail": [detail],
        }
    )
    return lines


def make_job(job_type: str = "SchedulerJob", now: datetime = NOW, **fields: Any) -> Job:
    values = {"hostname": "node-1", "pid": 100, "start_date": now - timedelta(hours=1), "latest_heartbeat": now}
    return Job.objects.create(job_type=job_type, **(values | fields))


def grouped(dag_id: str, groups: int, each: int, rng: random.Random) -> Dag:
    """A DAG of task groups in a row, each with tasks that hang together by chance."""
    tasks: list[Task] = []
    tree = [Group(group_id=None, children=tuple({"group": f"step_{g}"} for g in range(groups)))]
    names = [[f"step_{g}.{verb}_{n}" for n, verb in enumerate(rng.choices(VERBS, k=each))] for g in range(groups)]
    for g, members in enumerate(names):
        tree.append(Group(group_id=f"step_{g}", children=tuple({"task": name} for name in members), parent=None))
        for n, name in enumerate(members):
            after = rng.sample(members[n + 1 :], min(len(members) - n - 1, rng.randint(0, 2)))
            if g + 1 < groups and not after:
                after = [names[g + 1][0]]
            tasks.append(Task(task_id=name, operator_name="PythonOperator", downstream=tuple(after), retries=1))
    return Dag(dag_id=dag_id, tasks=tuple(tasks), groups=tuple(tree))


VERBS = ("extract", "stage", "clean", "merge", "check", "publish", "refresh", "archive")
