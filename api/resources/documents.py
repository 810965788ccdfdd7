"""What the API says of a DAG, a version, a run, a task instance: rows in, JSON objects out. Keys are Airflow's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from scheduler_app import wire
from scheduler_app.models import (
    DagModel,
    DagRun,
    DagVersion,
    Job,
    TaskInstance,
    TaskInstanceHistory,
    Trigger,
)
from scheduler_app.queries import rows as queries
from scheduler_app.queries.rows import TaskNames

from .. import ids
from ..render import file_token, stamp, took

_NOT_BACKFILLABLE = frozenset({"null", "once", "continuous", "asset", "events"})


def dag(row: DagModel) -> dict[str, Any]:
    """``DAGResponse``; needs the row's tags prefetched."""
    kind = (row.timetable or {}).get("kind")
    name = row.dag_display_name or row.dag_id
    return {
        "dag_id": row.dag_id,
        "dag_display_name": name,
        "is_paused": row.is_paused,
        "is_stale": row.is_stale,
        "last_parsed_time": stamp(row.last_parsed_time),
        "last_parse_duration": row.last_parse_duration,
        "last_expired": None,
        "bundle_name": row.bundle_name,
        "bundle_version": row.bundle_version,
        "relative_fileloc": row.relative_fileloc,
        "fileloc": row.fileloc,
        "description": row.description,
        "timetable_summary": row.timetable_summary,
        "timetable_description": row.timetable_description,
        "timetable_partitioned": kind == "partitioned" or "partition" in (row.timetable or {}),
        "timetable_periodic": row.timetable_periodic,
        "tags": [{"name": tag.name, "dag_id": row.dag_id, "dag_display_name": name} for tag in row.tags.all()],
        "max_active_tasks": row.max_active_tasks,
        "max_active_runs": row.max_active_runs,
        "max_consecutive_failed_dag_runs": row.max_consecutive_failed_dag_runs,
        "has_task_concurrency_limits": row.has_task_concurrency_limits,
        "has_import_errors": row.has_import_errors,
        "next_dagrun_logical_date": stamp(row.next_dagrun_logical_date),
        "next_dagrun_data_interval_start": stamp(row.next_dagrun_data_interval_start),
        "next_dagrun_data_interval_end": stamp(row.next_dagrun_data_interval_end),
        "next_dagrun_run_after": stamp(row.next_dagrun_run_after),
        "allowed_run_types": None,
        "owners": [owner.strip() for owner in row.owners.split(",") if owner.strip()],
        "is_backfillable": kind not in _NOT_BACKFILLABLE,
        "file_token": file_token(row.bundle_name, row.relative_fileloc),
    }


def version(row: DagVersion, name: str) -> dict[str, Any]:
    """``DagVersionResponse``; ``name`` is the DAG's display name."""
    return {
        "id": str(row.id),
        "version_number": row.version_number,
        "dag_id": row.dag_id,
        "bundle_name": row.bundle_name,
        "bundle_version": row.bundle_version,
        "created_at": stamp(row.created_at),
        "dag_display_name": name,
        "bundle_url": None,
    }


def run(row: DagRun) -> dict[str, Any]:
    """``DAGRunResponse`` of a row of ``queries.rows.runs``."""
    name = row.dag.dag_display_name or row.dag_id
    return {
        "dag_run_id": row.run_id,
        "dag_id": row.dag_id,
        "logical_date": stamp(row.logical_date),
        "queued_at": stamp(row.queued_at),
        "start_date": stamp(row.start_date),
        "end_date": stamp(row.end_date),
        "duration": took(row.start_date, row.end_date),
        "data_interval_start": stamp(row.data_interval_start),
        "data_interval_end": stamp(row.data_interval_end),
        "run_after": stamp(row.run_after),
        "last_scheduling_decision": stamp(row.last_scheduling_decision),
        "run_type": row.run_type,
        "state": row.state,
        "triggered_by": row.triggered_by,
        "triggering_user_name": row.triggering_user_name,
        "conf": row.conf,
        "note": row.note,
        "dag_versions": [version(row.dag_version, name)] if row.dag_version is not None else [],
        "bundle_version": row.bundle_version,
        "dag_display_name": name,
        "partition_key": row.partition_key,
        "partition_date": None,
    }


def task_instances_of(rows: Iterable[TaskInstance]) -> dict[str, Any]:
    """The answer about task instances that an action picked, in a stable order."""
    full = queries.task_instances(TaskInstance.objects.filter(pk__in=[row.pk for row in rows]))
    found = task_instances(list(full.order_by("dag_run_id", "task_id", "map_index")))
    return {"task_instances": found, "total_entries": len(found)}


def task_instances(rows: list[TaskInstance]) -> list[dict[str, Any]]:
    """``TaskInstanceResponse`` of rows of ``queries.rows.task_instances``; at most two statements of its own."""
    names = TaskNames(row.dag_version_id for row in rows)
    triggers = queries.triggers(rows)
    return [_task_instance(row, names, triggers.get(row.trigger_id or 0)) for row in rows]


def _task_instance(row: TaskInstance, names: TaskNames, trigger: Trigger | None) -> dict[str, Any]:
    rendered = getattr(row, "rendered_fields", None)
    return {
        "id": ids.to_uuid(row.pk),
        "logical_date": stamp(row.dag_run.logical_date),
        "run_after": stamp(row.dag_run.run_after),
        "note": row.note,
        "rendered_map_index": row.rendered_map_index or (str(row.map_index) if row.map_index >= 0 else None),
        "rendered_fields": {key: wire.plain(value) for key, value in rendered.fields.items()} if rendered else {},
        "trigger": _trigger(trigger, row.queue) if trigger is not None else None,
        "triggerer_job": None,
        **_try(row, names),
    }


def tries(rows: Iterable[TaskInstanceHistory | TaskInstance]) -> list[dict[str, Any]]:
    """``TaskInstanceHistoryResponse`` of ended tries and of the live row."""
    found = list(rows)
    names = TaskNames(row.dag_version_id for row in found)
    return [_try(row, names) for row in found]


def _try(row: TaskInstanceHistory | TaskInstance, names: TaskNames) -> dict[str, Any]:
    dag_name = row.dag_run.dag.dag_display_name or row.dag_id
    task = names.task(row.dag_version_id, row.task_id)
    return {
        "task_id": row.task_id,
        "dag_id": row.dag_id,
        "dag_run_id": row.dag_run.run_id,
        "map_index": row.map_index,
        "start_date": stamp(row.start_date),
        "end_date": stamp(row.end_date),
        "duration": took(row.start_date, row.end_date),
        "state": row.state,
        "try_number": row.try_number,
        "max_tries": row.max_tries,
        "task_display_name": names.display(row.dag_version_id, row.task_id),
        "dag_display_name": dag_name,
        "hostname": row.hostname,
        "unixname": row.unixname,
        "pool": row.pool,
        "pool_slots": row.pool_slots,
        "queue": row.queue,
        "priority_weight": row.priority_weight,
        "operator": row.operator_name or None,
        "operator_name": (task.shown_operator if task else row.operator_name) or None,
        "queued_when": stamp(row.queued_when),
        "scheduled_when": stamp(row.scheduled_when),
        "pid": row.pid,
        "executor": row.executor,
        "executor_config": json.dumps(task.executor_config if task and task.executor_config else {}),
        "dag_version": version(row.dag_version, dag_name) if row.dag_version is not None else None,
    }


def _trigger(row: Trigger, queue: str) -> dict[str, Any]:
    return {
        "id": row.pk,
        "classpath": row.classpath,
        "kwargs": json.dumps(wire.plain(row.kwargs)),
        "created_date": stamp(row.created_date),
        "queue": queue,
        "triggerer_id": row.triggerer_id,
    }


def job(row: Job) -> dict[str, Any]:
    """``JobResponse``."""
    return {
        "id": row.pk,
        "dag_id": None,
        "state": row.state,
        "job_type": row.job_type,
        "start_date": stamp(row.start_date),
        "end_date": stamp(row.end_date),
        "latest_heartbeat": stamp(row.latest_heartbeat),
        "executor_class": row.executor_class,
        "hostname": row.hostname,
        "unixname": row.unixname,
        "dag_display_name": None,
    }
