"""One task instance: its tries, its neighbours, what it pushed, and its fields as rendered."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduler_app import wire
from scheduler_app.models import DagRun, RenderedFields, TaskInstance, TaskInstanceHistory, XCom

from .page_run import digest


@dataclass(frozen=True, slots=True)
class Try:
    number: int
    state: str | None
    start: datetime | None
    end: datetime | None
    hostname: str
    pid: int | None
    reason: str | None
    current: bool


@dataclass(frozen=True, slots=True)
class Pushed:
    key: str
    value: Any
    map_index: int
    timestamp: datetime


def get_task(
    visible: QuerySet[TaskInstance], dag_id: str, run_id: str, task_id: str, map_index: int | None
) -> TaskInstance | None:
    """The instance with its run and DAG; no map index means the only one, or the first of a mapped task. One query."""
    found = visible.filter(dag_run__dag_id=dag_id, dag_run__run_id=run_id, task_id=task_id)
    if map_index is not None:
        found = found.filter(map_index=map_index)
    return found.select_related("dag_run__dag").order_by("map_index").first()


def states_by_index(visible: QuerySet[TaskInstance], dag_id: str, run_id: str, task_id: str) -> dict[int, str]:
    """Map index → state or "none", of a mapped task's first 1,000 instances; −1 for a plain task. One query."""
    found = visible.filter(dag_run__dag_id=dag_id, dag_run__run_id=run_id, task_id=task_id).order_by("map_index")
    return {index: state or "none" for index, state in found.values_list("map_index", "state")[:1000]}


def tries(instance: TaskInstance) -> list[Try]:
    """Its tries, oldest first, the last of them the live row. A row that never started has none. One query."""
    ended = TaskInstanceHistory.objects.filter(task_instance=instance).order_by("try_number", "id")
    newest: dict[int, Try] = {row.try_number: _try(row, current=False) for row in ended}
    if instance.try_number > 0:
        newest[instance.try_number] = _try(instance, current=True)
    return [newest[number] for number in sorted(newest)]


def _try(row: TaskInstance | TaskInstanceHistory, *, current: bool) -> Try:
    return Try(
        row.try_number, row.state, row.start_date, row.end_date, row.hostname, row.pid, row.reason, current=current
    )


def mapped_indexes(instance: TaskInstance, limit: int = 200) -> list[tuple[int, str | None, str | None]]:
    """(map index, its rendered name, state) of a mapped task's first instances; one for a plain task. One query."""
    siblings = TaskInstance.objects.filter(dag_run_id=instance.dag_run_id, task_id=instance.task_id)
    return list(siblings.order_by("map_index").values_list("map_index", "rendered_map_index", "state")[:limit])


def pushed(instance: TaskInstance, limit: int = 100) -> list[Pushed]:
    """Its XComs as plain JSON. One query."""
    rows = XCom.objects.filter(dag_run_id=instance.dag_run_id, task_id=instance.task_id, map_index=instance.map_index)
    return [
        Pushed(row.key, wire.plain(row.value), row.map_index, row.timestamp) for row in rows.order_by("key")[:limit]
    ]


def rendered(instance: TaskInstance) -> dict[str, Any]:
    """Its template fields as the last try saw them; empty while it has not started. One query."""
    fields = RenderedFields.objects.filter(task_instance=instance).values_list("fields", flat=True).first()
    return fields or {}


@dataclass(frozen=True, slots=True)
class Neighbour:
    task_id: str
    state: str | None


def neighbours(run: DagRun, task_ids: Iterable[str]) -> list[Neighbour]:
    """The states of other tasks of the run, the worst of a mapped one first met. One query."""
    wanted = list(task_ids)
    states: dict[str, str | None] = {}
    found = TaskInstance.objects.filter(dag_run=run, task_id__in=wanted)
    for task_id, state in found.order_by("task_id", "map_index").values_list("task_id", "state"):
        if states.setdefault(task_id, state) != "failed" and state == "failed":
            states[task_id] = state
    return [Neighbour(task_id, states[task_id]) for task_id in wanted if task_id in states]


def pulse(visible: QuerySet[TaskInstance], pk: int) -> str | None:
    """What the live poll of its page compares; None when there is none. One query."""
    fields = ("state", "try_number", "start_date", "end_date", "next_at", "held_at", "reason")
    record = visible.filter(pk=pk).values_list(*fields).first()
    return None if record is None else digest(record)
