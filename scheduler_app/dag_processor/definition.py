"""The row of a DAG as its file defines it: what the API and pages show, and its next slot."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING, Any

from scheduler_app.conf import Conf
from scheduler_app.models import DagModel, DagTag, Pool

from . import schedule

if TYPE_CHECKING:
    from .store import Parsed

Json = Any


def new_row(dag_id: str, parsed: Parsed, document: Json, now: datetime, conf: Conf) -> DagModel:
    """The first row of a DAG; everything but its identity and its pause switch is filled by :func:`update`."""
    paused = document.get("is_paused_upon_creation")
    return DagModel(
        dag_id=dag_id,
        dag_display_name=document.get("dag_display_name") or dag_id,
        bundle_name=parsed.bundle.name,
        relative_fileloc=parsed.path,
        fileloc=os.fspath(parsed.bundle.folder / parsed.path),
        is_paused=conf.dags_are_paused_at_creation if paused is None else paused,
        created_at=now,
    )


def update(row: DagModel, document: Json, parsed: Parsed, now: datetime, conf: Conf) -> bool:
    """Brings the locked row up to date by one statement; whether something changed besides the times of the parse."""
    wanted = _columns(document, parsed, conf)
    changed = [name for name, value in wanted.items() if getattr(row, name) != value]
    was_stale = row.is_stale
    for name in changed:
        setattr(row, name, wanted[name])
    if schedule.is_other(row, document) or was_stale or "timetable" in changed:
        changed += schedule.renew(row, document, now)
    row.last_parsed_time = now
    row.last_parse_duration = parsed.document.get("seconds")
    row.save(update_fields=[*changed, "last_parsed_time", "last_parse_duration"])
    return bool(changed)


def _columns(document: Json, parsed: Parsed, conf: Conf) -> dict[str, Any]:
    tasks = document.get("tasks", ())
    return {
        "dag_display_name": document.get("dag_display_name") or document["dag_id"],
        "bundle_name": parsed.bundle.name,
        "bundle_version": parsed.bundle_version,
        "fileloc": os.fspath(parsed.bundle.folder / parsed.path),
        "relative_fileloc": parsed.path,
        "description": document.get("description"),
        "owners": ", ".join(document.get("owners") or _owners(tasks)),
        "timezone": document.get("timezone", "UTC"),
        "timetable": document.get("timetable", {"kind": "null"}),
        "timetable_summary": document.get("timetable_summary"),
        "timetable_description": document.get("timetable_description"),
        "timetable_periodic": document.get("timetable_periodic", False),
        "catchup": document.get("catchup", False),
        "misfire_policy": document.get("misfire_policy"),
        "misfire_limit": document.get("misfire_limit"),
        "overlap_policy": document.get("overlap_policy", "queue"),
        "schedule_jitter": document.get("schedule_jitter", 0.0),
        "start_date": schedule.instant(document.get("start_date")),
        "end_date": schedule.instant(document.get("end_date")),
        "is_stale": False,
        "has_import_errors": False,
        "has_task_concurrency_limits": any(
            task.get("max_active_tis_per_dag") or task.get("max_active_tis_per_dagrun") for task in tasks
        ),
        "max_active_tasks": document.get("max_active_tasks", conf.max_active_tasks_per_dag),
        "max_active_runs": document.get("max_active_runs", conf.max_active_runs_per_dag),
        "max_consecutive_failed_dag_runs": document.get("max_consecutive_failed_dag_runs", 0),
        "missed_scans": 0,
    }


def _owners(tasks: Any) -> list[str]:
    return sorted({task.get("owner", "airflow") for task in tasks})


def store_tags(row: DagModel, document: Json) -> None:
    """Rewrites the tags when they differ."""
    wanted = set(document.get("tags", ()))
    found = set(row.tags.values_list("name", flat=True))
    if found - wanted:
        row.tags.filter(name__in=found - wanted).delete()
    if wanted - found:
        DagTag.objects.bulk_create([DagTag(dag=row, name=name) for name in sorted(wanted - found)])


def missing_pools(document: Json) -> list[str]:
    """One sentence for each pool that a task names and that does not exist; its task instances would wait for ever."""
    tasks_of: dict[str, list[str]] = {}
    for task in document.get("tasks", ()):
        if "pool" in task:
            tasks_of.setdefault(task["pool"], []).append(task["task_id"])
    if not tasks_of:
        return []
    known = set(Pool.objects.filter(pool__in=list(tasks_of)).values_list("pool", flat=True))
    return [
        f"There is no pool {pool!r}, which {', '.join(sorted(tasks_of[pool]))} need: create it, or they wait for ever."
        for pool in sorted(tasks_of.keys() - known)
    ]
