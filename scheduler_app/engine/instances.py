"""Which task instances a run has: when it starts, and when its DAG version changes under it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from scheduler_app.engine.board import Ti
from scheduler_app.engine.dag import Task
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.mapping import literal_length
from scheduler_app.engine.states import REMOVED


class Changes(NamedTuple):
    """What brings the instances of a run to a DAG version."""

    #: (task id, map index) to insert
    create: list[tuple[str, int]]
    #: ids of removed instances whose task is back
    restore: list[object]


def instances(graph: Graph, logical_date: datetime | None) -> list[tuple[str, int]]:
    """(task id, map index) of a new run's instances, in topological order.

    Tasks outside their own start and end dates have none (a run without a logical date has all). A length known from
    the file is expanded at once; an empty one, and every other, is one instance with index -1.
    """
    found: list[tuple[str, int]] = []
    for task_id in graph.order:
        if within_dates(graph.tasks[task_id], logical_date):
            length = _known_length(graph, task_id) or 0
            found += [(task_id, index) for index in range(length)] if length else [(task_id, -1)]
    return found


def changes(graph: Graph, tis: Iterable[Ti], logical_date: datetime | None) -> Changes:
    """What is missing in a run that began with another version of the DAG, or lost a row. (``look`` removes.)"""
    present: set[str] = set()
    restore = []
    for ti in tis:
        present.add(ti.task_id)
        if ti.state == REMOVED and ti.task_id in graph.tasks and not _beyond_length(graph, ti):
            restore.append(ti.id)
    return Changes([pair for pair in instances(graph, logical_date) if pair[0] not in present], restore)


def within_dates(task: Task, logical_date: datetime | None) -> bool:
    """A run with this logical date has an instance of the task."""
    if logical_date is None:
        return True
    if task.start_date is not None and logical_date < datetime.fromisoformat(task.start_date):
        return False
    return task.end_date is None or logical_date <= datetime.fromisoformat(task.end_date)


def _known_length(graph: Graph, task_id: str) -> int | None:
    if task_id not in graph.mapped_tasks:
        return None
    own = graph.tasks[task_id].mapped
    documents = [graph.groups[group_id].mapped for group_id in graph.map_groups.get(task_id, ())]
    total = 1
    for document in documents if own is None else [*documents, own]:
        length = literal_length(document)
        if length is None:
            return None
        total *= length
    return total


def _beyond_length(graph: Graph, ti: Ti) -> bool:
    """It was removed because the list became shorter, not because its task left."""
    return ti.task_id in graph.mapped_tasks and ti.map_index >= 0
