"""Callbacks that ran, run, wait or were given up, each with the run and task that it is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from scheduler_app import attempt_log
from scheduler_app.models import Callback, TaskInstance

STATES = ("pending", "running", "success", "failed")


def listed(rows: QuerySet[Callback]) -> QuerySet[Any]:
    """The rows with their run, ``task_name`` and ``task_map_index`` (null for a run's own callback)."""
    task = TaskInstance.objects.filter(pk=OuterRef("task_instance_id"))
    return rows.select_related("dag_run").annotate(
        task_name=Subquery(task.values("task_id")[:1]), task_map_index=Subquery(task.values("map_index")[:1])
    )


def log_file(folder: Path, row: Any) -> Path:
    """Where a row of :func:`listed` logs: the try's own log, or a file of the run."""
    run_id = row.dag_run.run_id if row.dag_run else ""
    if row.task_name is None:
        return attempt_log.callback_path(folder, row.dag_id, run_id, row.kind)
    return attempt_log.path(folder, row.dag_id, run_id, row.task_name, row.task_map_index, row.try_number or 0)
