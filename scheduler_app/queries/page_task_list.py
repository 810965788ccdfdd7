"""Task instances of all runs, by state, task and pool."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import QuerySet

from scheduler_app.engine import states
from scheduler_app.models import DagModel, DagRun, TaskInstance

from .page_slice import page_slice

SIZE: Final = 50
#: Without a state to look by, the newest runs whose task instances are shown.
RUNS: Final = 1_000
#: What an address may ask for: "hours" → how far back ended ones are looked for.
SPANS: Final = {"1": timedelta(hours=1), "24": timedelta(hours=24), "168": timedelta(days=7)}


@dataclass(frozen=True, slots=True)
class TaskFilter:
    """ "" asks for any. ``state`` "none" is a task instance without one; ``since`` bounds the end of ended ones."""

    dag: str = ""
    task: str = ""
    pool: str = ""
    state: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class TaskPage:
    rows: list[TaskInstance]
    page: int
    more: bool


def task_page(
    visible: QuerySet[TaskInstance], dags: QuerySet[DagModel], runs: QuerySet[DagRun], asked: TaskFilter, page: int = 1
) -> TaskPage:
    """One page. One query, whose cost follows what it looks at: the rows of a state by that state's index, ended ones
    of a span of time by their end, those of any state in the newest runs alone."""
    found = visible
    if asked.dag:
        found = found.filter(dag_id__in=_named(dags, asked.dag).values("pk"))
    if asked.task:
        found = found.filter(task_id__icontains=asked.task)
    if asked.pool:
        found = found.filter(pool=asked.pool)
    order = ["-dag_run_id", "-id"]
    if asked.state in states.FINISHED:
        found = found.filter(state=asked.state)
        order = ["-end_date", "-id"]
        if asked.since:
            found = found.filter(end_date__gte=asked.since)
    elif asked.state:
        found = found.filter(state=None if asked.state == "none" else asked.state)
    else:
        newest = runs.filter(dag_id__in=_named(dags, asked.dag).values("pk")) if asked.dag else runs
        found = found.filter(dag_run_id__in=newest.order_by("-id").values("pk")[:RUNS])
    rows, more = page_slice(found.select_related("dag_run").order_by(*order), page, SIZE)
    return TaskPage(rows, page, more)


def _named(dags: QuerySet[DagModel], text: str) -> QuerySet[DagModel]:
    return dags.filter(dag_id__icontains=text).order_by()
