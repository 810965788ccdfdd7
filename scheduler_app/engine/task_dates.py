"""Which tasks take part in a run: those whose own start and end dates admit its logical date."""

from __future__ import annotations

import functools
from datetime import datetime

from scheduler_app.engine.graph import Graph


def task_ids_at(graph: Graph, logical_date: datetime | None) -> tuple[str, ...]:
    """Ids in definition order of the tasks that get a task instance in a run of that logical date.

    A run without a logical date has all of them. (Airflow 3.3: no task instances are made for tasks outside their own
    start and end dates.)
    """
    if logical_date is None:
        return tuple(graph.tasks)
    return tuple(
        task_id
        for task_id, task in graph.tasks.items()
        if (task.start_date is None or _instant(task.start_date) <= logical_date)
        and (task.end_date is None or _instant(task.end_date) >= logical_date)
    )


@functools.lru_cache(maxsize=4096)
def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
