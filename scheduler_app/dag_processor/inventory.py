"""The rows about files: what was stored of a bundle's files, which are missing, and the end of one that is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from django.db.models import F

from scheduler_app.models import Backfill, DagFile, DagModel, DagRun, Job, ParseError, db

from .backfill_slots import MOST_SLOTS
from .bundle import Bundle
from .plan import Known
from .schedule import has_own_class, refresh_of
from .store import files_waiting_for, make_stale

_ROWS_A_STATEMENT = 500
_NOWHERE = Path()


#: "Is there anything?" and what time is it: an idle processor asks this and nothing else.
_PROBE = """
SELECT c.now,
       EXISTS (SELECT 1 FROM scheduler_dag_file f
               WHERE f.parse_requested_at IS NOT NULL AND f.bundle_name = ANY(%(bundles)s)),
       EXISTS (SELECT 1 FROM scheduler_dag_run r WHERE r.state = 'queued' AND r.interval_pending)
       OR EXISTS (SELECT 1 FROM scheduler_backfill b WHERE b.completed_at IS NULL AND b.slots_pending),
       EXISTS (SELECT 1 FROM scheduler_callback b WHERE b.state = 'pending' AND b.next_at <= c.now
               AND NOT starts_with(b.kind, 'mail_')),
       EXISTS (SELECT 1 FROM scheduler_callback b WHERE b.state = 'pending' AND b.next_at <= c.now
               AND starts_with(b.kind, 'mail_'))
FROM (SELECT clock_timestamp() AS now) c
"""


class Probe(NamedTuple):
    """The database's clock, and whether somebody waits for this processor."""

    now: datetime
    parse_requests: bool
    questions: bool
    due_callbacks: bool
    due_mails: bool


@dataclass(frozen=True, slots=True)
class Gone:
    dag_ids: tuple[str, ...]
    #: files that may define these DAGs now
    retry: tuple[str, ...]


def probe(bundle_names: Iterable[str]) -> Probe:
    """One statement; each answer comes from a small or partial index."""
    return Probe(*db.fetch(_PROBE, {"bundles": list(bundle_names)})[0])


def load(bundle: Bundle) -> tuple[dict[str, Known], dict[str, int]]:
    """What is stored of each file that the bundle covers, and how many looks missed it."""
    broken = set(ParseError.objects.filter(bundle_name=bundle.name).values_list("filename", flat=True))
    planned = _planned_files(bundle)
    known: dict[str, Known] = {}
    missed: dict[str, int] = {}
    for row in DagFile.objects.filter(bundle_name=bundle.name):
        if not bundle.covers(row.relative_path):
            continue
        known[row.relative_path] = Known(
            stamp={path: tuple(stamp) if stamp else None for path, stamp in row.stamp.items()},
            parsed_at=row.last_parsed_at,
            duration_seconds=row.last_duration or 0.0,
            requested_at=row.parse_requested_at,
            has_error=row.relative_path in broken,
            has_own_class=row.relative_path in planned,
            refresh_at=planned.get(row.relative_path),
        )
        if row.missed_scans:
            missed[row.relative_path] = row.missed_scans
    active = DagModel.objects.filter(bundle_name=bundle.name, is_stale=False)
    for path in active.values_list("relative_fileloc", flat=True).distinct():
        if bundle.covers(path):
            known.setdefault(path, Known())
    return known, missed


def _planned_files(bundle: Bundle) -> dict[str, datetime | None]:
    """The files with a timetable class of their author's, and when the first of their plans runs short."""
    found: dict[str, list[datetime]] = {}
    planned = DagModel.objects.filter(bundle_name=bundle.name, is_stale=False)
    planned = planned.filter(timetable__kind__in=["custom", "asset_or_time"])
    for path, timetable in planned.values_list("relative_fileloc", "timetable"):
        if has_own_class(timetable):
            at = refresh_of(timetable)
            found.setdefault(path, []).extend([at] if at is not None else [])
    return {path: min(times, default=None) for path, times in found.items()}


def planning_facts(bundle: Bundle, path: str) -> dict[str, Any]:
    """For the file's DAGs with a timetable class of their author's (docs/borders.md §7): where their plans go on, and
    the manual runs whose data interval only that class can say."""
    dags = DagModel.objects.filter(bundle_name=bundle.name, relative_fileloc=path)
    last_slots = {
        dag_id: {"start": start.isoformat(), "end": end.isoformat()}
        for dag_id, start, end, timetable in dags.values_list("dag_id", "last_slot_start", "last_slot_end", "timetable")
        if start is not None and end is not None and has_own_class(timetable)
    }
    manual: dict[str, dict[str, str]] = defaultdict(dict)
    runs = DagRun.objects.filter(state="queued", interval_pending=True)
    runs = runs.filter(dag__bundle_name=bundle.name, dag__relative_fileloc=path)
    for key, dag_id, logical_date, run_after in runs.values_list("pk", "dag_id", "logical_date", "run_after"):
        manual[dag_id][str(key)] = (logical_date or run_after).isoformat()
    return {"last_slots": last_slots, "manual": dict(manual), "ranges": _ranges(bundle, path)}


def _ranges(bundle: Bundle, path: str) -> dict[str, Any]:
    """By DAG, then by backfill: the range whose slots only the class can list."""
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    rows = Backfill.objects.waiting_for_slots().filter(dag__bundle_name=bundle.name, dag__relative_fileloc=path)
    for key, dag_id, start, end in rows.values_list("pk", "dag_id", "from_date", "to_date"):
        found[dag_id][str(key)] = {"start": start.isoformat(), "end": end.isoformat(), "most": MOST_SLOTS}
    return dict(found)


def files_with_questions(bundle_names: Iterable[str]) -> list[tuple[str, str, str]]:
    """(what, bundle, file) of runs that wait for their data interval, and backfills for their slots: the file is parsed
    to ask its timetable's class. Two statements."""
    runs = DagRun.objects.filter(state="queued", interval_pending=True, dag__bundle_name__in=list(bundle_names))
    backfills = Backfill.objects.waiting_for_slots().filter(dag__bundle_name__in=list(bundle_names))
    place = ("pk", "dag__bundle_name", "dag__relative_fileloc")
    asked = [("run", row) for row in runs.order_by("pk").values_list(*place)[:_ROWS_A_STATEMENT]]
    asked += [("backfill", row) for row in backfills.order_by("pk").values_list(*place)[:_ROWS_A_STATEMENT]]
    return [(f"{kind} {key}", name, path) for kind, (key, name, path) in asked]


def point_to(bundle: Bundle, version: str, guard: Callable[[], None]) -> int:
    """The bundle's DAGs run from `version` from now on; how many did not yet."""
    moved = 0
    while True:
        with db.atomic():
            guard()
            rows = DagModel.objects.filter(bundle_name=bundle.name, is_stale=False)
            # exclude() keeps the rows without a version
            behind = rows.exclude(bundle_version=version).order_by("pk").select_for_update(no_key=True)
            chunk = list(behind.values_list("pk", flat=True)[:_ROWS_A_STATEMENT])
            if not chunk:
                return moved
            moved += DagModel.objects.filter(pk__in=chunk).update(bundle_version=version)


def count_missed(bundle: Bundle, found_again: Iterable[str], missing: Iterable[str], guard: Callable[[], None]) -> None:
    """One more missed look for each missing file, none for those that are back."""
    back, gone = list(found_again), list(missing)
    if not back and not gone:
        return
    rows = DagFile.objects.filter(bundle_name=bundle.name)
    with db.atomic():
        guard()
        if back:
            rows.filter(relative_path__in=back).update(missed_scans=0)
        if gone:
            rows.filter(relative_path__in=gone).update(missed_scans=F("missed_scans") + 1)


def remove_file(bundle: Bundle, path: str, guard: Callable[[], None]) -> Gone:
    """The file is gone: its DAGs are stale, its row and its error go."""
    with db.atomic():
        guard()
        rows = DagModel.objects.filter(bundle_name=bundle.name, relative_fileloc=path, is_stale=False)
        dag_ids = tuple(rows.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
        make_stale(dag_ids)
        ParseError.objects.filter(bundle_name=bundle.name, filename=path).delete()
        DagFile.objects.filter(bundle_name=bundle.name, relative_path=path).delete()
        return Gone(dag_ids, tuple(files_waiting_for(dag_ids)))


def remove_bundle(name: str, guard: Callable[[], None]) -> int:
    """A bundle that is switched off: its DAGs are stale; how many were not."""
    removed = 0
    paths = DagFile.objects.filter(bundle_name=name).values_list("relative_path", flat=True)
    active = DagModel.objects.filter(bundle_name=name, is_stale=False).values_list("relative_fileloc", flat=True)
    for path in sorted({*paths, *active}):
        removed += len(remove_file(Bundle(name, _NOWHERE), path, guard).dag_ids)
    return removed


def owned_bundles(now: datetime, lease_seconds: float) -> set[str]:
    """The bundles that living processors own."""
    alive = Job.objects.filter(job_type="DagProcessorJob").alive(now, lease_seconds)
    return {name for names in alive.values_list("bundle_names", flat=True) for name in names}
