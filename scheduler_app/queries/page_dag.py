"""One DAG: how it fares, what it consists of, and its versions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from django.db.models import Count

from scheduler_app import timetables
from scheduler_app.engine import run_plans
from scheduler_app.models import (
    BundleVersion,
    DagModel,
    DagRun,
    DagVersion,
    DagWarning,
    ParseError,
    SourceBlob,
    TaskInstance,
    schedules,
)

from .page_dags import Bar, latest_bars

#: Runs on the overview.
RUNS = 30


@dataclass(frozen=True, slots=True)
class FailedTask:
    run_id: str
    run_pk: int
    task_id: str
    map_index: int
    try_number: int
    ended: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Overview:
    bars: list[Bar]
    usual: float | None
    #: the usual duration as a share of the longest shown one
    usual_height: float
    last_failure: FailedTask | None
    import_error: ParseError | None
    warnings: list[tuple[str, str]]
    tags: list[str]


def overview(dag: DagModel, now: datetime) -> Overview:
    """What the first page of a DAG shows. Five queries."""
    bars = latest_bars([dag.dag_id], RUNS, now).get(dag.dag_id, [])
    ended = [bar.seconds for bar in bars if bar.state == "success" and bar.seconds is not None]
    usual = median(ended) if ended else None
    longest = max((bar.seconds for bar in bars if bar.seconds), default=0.0)
    # of the runs shown alone: among all its failures the newest one would be looked for in everybody's
    shown = DagRun.objects.filter(dag=dag).order_by("-run_after", "-id").values("pk")[:RUNS]
    failed = TaskInstance.objects.filter(dag_run__in=shown, state="failed", end_date__isnull=False)
    latest = failed.order_by("-end_date").values_list(
        "dag_run__run_id", "dag_run_id", "task_id", "map_index", "try_number", "end_date", "reason"
    )
    record = latest.first()
    return Overview(
        bars=bars,
        usual=usual,
        usual_height=min(1.0, usual / longest) if usual and longest else 0.0,
        last_failure=FailedTask(*record) if record else None,
        import_error=import_error(dag),
        warnings=list(DagWarning.objects.filter(dag=dag).order_by("id").values_list("warning_type", "message")),
        tags=list(dag.tags.order_by("name").values_list("name", flat=True)),
    )


def coming(dag: DagModel, now: datetime, count: int = 5) -> list[datetime]:
    """When the next runs of its schedule are due, by the function that makes them. No query."""
    try:
        timetable = timetables.from_doc(dag.timetable or {"kind": "null"})
        plans = run_plans.preview(timetable, schedules.schedule_facts(dag, now), count)
    except ValueError:  # a timetable that only the child of its file can answer for
        plans = []
    return [plan.due for plan in plans]


def import_error(dag: DagModel) -> ParseError | None:
    """Why its file cannot be read now. One query."""
    return ParseError.objects.filter(bundle_name=dag.bundle_name, filename=dag.relative_fileloc).first()


def task_states(run_pks: Iterable[int]) -> dict[tuple[int, str], dict[str, int]]:
    """(run, task) → state or "none" → how many of its instances. One query."""
    wanted = list(run_pks)
    found: dict[tuple[int, str], dict[str, int]] = {}
    rows = TaskInstance.objects.filter(dag_run_id__in=wanted).order_by()
    for run, task, state, count in rows.values_list("dag_run_id", "task_id", "state").annotate(n=Count("id")):
        found.setdefault((run, task), {})[state or "none"] = count
    return found


def versions(dag: DagModel, limit: int = 50) -> list[tuple[int, datetime]]:
    """(number, created), newest first. One query."""
    rows = DagVersion.objects.filter(dag=dag).order_by("-version_number")
    return list(rows.values_list("version_number", "created_at")[:limit])


def version(dag: DagModel, number: int | None) -> DagVersion | None:
    """One version; the latest for None. One query."""
    rows = DagVersion.objects.filter(dag=dag).order_by("-version_number")
    return (rows if number is None else rows.filter(version_number=number)).first()


def source(dag: DagModel, of: DagVersion) -> str | None:
    """The text of the file as that version knew it; None when it is not kept. At most two queries."""
    sha256 = of.source_sha256 or _in_manifest(of, dag.relative_fileloc)
    blob = SourceBlob.objects.filter(pk=sha256).first() if sha256 else None
    return bytes(blob.content).decode(errors="replace") if blob else None


def _in_manifest(of: DagVersion, path: str) -> str:
    manifest: dict[str, Any] | None = (
        BundleVersion.objects.filter(bundle_name=of.bundle_name, version=of.bundle_version)
        .values_list("manifest", flat=True)
        .first()
    )
    return str((manifest or {}).get(path, ""))
