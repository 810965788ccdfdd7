"""Lists of runs, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import QuerySet

from scheduler_app.models import DagRun
from scheduler_app.models.run import RUN_TYPES

from .page_slice import page_slice

SIZE: Final = 50
TYPES: Final = RUN_TYPES


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs a list shows; "" and None ask for any. ``since`` and ``until`` bound ``run_after``, half open."""

    dag_id: str = ""
    text: str = ""
    state: str = ""
    run_type: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    rows: list[DagRun]
    page: int
    more: bool


def run_page(visible: QuerySet[DagRun], asked: RunFilter, page: int = 1) -> RunPage:
    """One page; whether there is another one is known without counting a million rows. One query.

    Of one DAG, or of some days, they come by ``run_after``, of all by the time of their creation, failed ones by their
    end: each order is that of an index.
    """
    found = matching(visible.defer("conf"), asked)
    dated = asked.dag_id or asked.since or asked.until
    order = ["-run_after", "-id"] if dated else ["-end_date", "-id"] if asked.state == "failed" else ["-id"]
    rows, more = page_slice(found.order_by(*order), page, SIZE)
    return RunPage(rows, page, more)


def matching(visible: QuerySet[DagRun], asked: RunFilter) -> QuerySet[DagRun]:
    """The runs that a list shows, on whatever page. No query by itself."""
    found = visible
    if asked.dag_id:
        found = found.filter(dag_id=asked.dag_id)
    if asked.text:
        found = found.filter(dag__dag_id__icontains=asked.text)
    if asked.state:
        found = found.filter(state=asked.state)
    if asked.run_type:
        found = found.filter(run_type=asked.run_type)
    if asked.since:
        found = found.filter(run_after__gte=asked.since)
    if asked.until:
        found = found.filter(run_after__lt=asked.until)
    return found
