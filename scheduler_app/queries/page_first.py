"""Why there is no DAG yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max

from scheduler_app.models import DagFile, Job, ParseError


@dataclass(frozen=True, slots=True)
class FirstVisit:
    folder: str
    files: int
    last_parsed: datetime | None
    import_errors: int
    processor_alive: bool


def first_visit(now: datetime, lease: timedelta, folder: str) -> FirstVisit:
    """What an empty list tells a newcomer. Three queries."""
    seen = DagFile.objects.aggregate(files=Count("id"), last=Max("last_parsed_at"))
    return FirstVisit(
        folder=folder,
        files=seen["files"],
        last_parsed=seen["last"],
        import_errors=ParseError.objects.count(),
        processor_alive=Job.objects.alive(now, lease.total_seconds()).filter(job_type="DagProcessorJob").exists(),
    )
