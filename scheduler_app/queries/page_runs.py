"""Lists of runs, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from scheduler_app.models import DagRun
from scheduler_app.models.run import RUN_TYPES

from .page_slice import page_slice

SIZE: Final = 50
TYPES: Final = RUN_TYPES


@dataclass(frozen=True, slots=True)
class RunPage:
    rows: list[DagRun]
    page: int
    more: bool


def run_page(
    visible: QuerySet[DagRun], *, dag_id: str = "", text: str = "", state: str = "", run_type: str = "", page: int = 1
) -> RunPage:
    """One page; whether there is another one is known without counting a million rows. One query.

    Of one DAG they come by ``run_after``, of all by the time of their creation, failed ones by their end: each order
    is that of an index.
    """
    found = matching(visible.defer("conf"), dag_id=dag_id, text=text, state=state, run_type=run_type)
    order = ["-run_after", "-id"] if dag_id else ["-end_date", "-id"] if state == "failed" else ["-id"]
    rows, more = page_slice(found.order_by(*order), page, SIZE)
    return RunPage(rows, page, more)


def matching(
    visible: QuerySet[DagRun], *, dag_id: str = "", text: str = "", state: str = "", run_type: str = ""
) -> QuerySet[DagRun]:
    """The runs that a list shows, on whatever page; "" asks for any. No query by itself."""
    found = visible
    if dag_id:
        found = found.filter(dag_id=dag_id)
    if text:
        found = found.filter(dag__dag_id__icontains=text)
    if state:
        found = found.filter(state=state)
    if run_type:
        found = found.filter(run_type=run_type)
    return found
