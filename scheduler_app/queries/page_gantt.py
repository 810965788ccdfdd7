"""What a run's task instances did when: each try from the moment it was due to its end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.db.models import F, QuerySet

from scheduler_app.models import TaskInstance, TaskInstanceHistory

#: Task instances on one picture.
ROWS: Final = 400


@dataclass(frozen=True, slots=True)
class Attempt:
    number: int
    state: str | None
    #: when it was scheduled
    due: datetime | None
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class Row:
    id: int
    task_id: str
    map_index: int
    rendered_map_index: str | None
    state: str | None
    tries: list[Attempt] = field(default_factory=list)

    @property
    def begin(self) -> datetime | None:
        """When its first try began."""
        return min((one.start for one in self.tries if one.start), default=None)


def rows(run_pk: int) -> tuple[list[Row], int]:
    """The instances that were at least scheduled, in the order of their starts, and how many are left out.

    Three queries.
    """
    instances = TaskInstance.objects.filter(dag_run_id=run_pk)
    shown = instances.exclude(scheduled_when=None, queued_when=None, start_date=None)
    records = list(_fields(shown.order_by(F("start_date").asc(nulls_last=True), "id"))[:ROWS])
    found = {record[0]: Row(*record[:5]) for record in records}
    history = TaskInstanceHistory.objects.filter(task_instance__in=list(found)).order_by("try_number", "id")
    ended = history.values_list(
        "task_instance_id", "try_number", "state", "scheduled_when", "queued_when", "start_date", "end_date"
    )
    for pk, number, state, scheduled, queued, start, end in ended:
        found[pk].tries.append(Attempt(number, state, scheduled or queued, start, end))
    for pk, _task, _index, _name, state, number, scheduled, queued, first, start, end in records:
        found[pk].tries.append(Attempt(number, state, scheduled or queued, first or start, end))
    left = instances.count() - len(found)
    return sorted(found.values(), key=_order), left


def _fields(instances: QuerySet[TaskInstance]) -> Iterable[Any]:
    return instances.values_list(
        "id", "task_id", "map_index", "rendered_map_index", "state", "try_number", "scheduled_when", "queued_when",
        "first_start_date", "start_date", "end_date",
    )  # fmt: skip


def _order(row: Row) -> tuple[bool, datetime, int]:
    """Those that have begun first, by their starts; then those that wait, by when they were due."""
    moment = row.begin or row.tries[-1].due
    return row.begin is None, moment or datetime.max.replace(tzinfo=UTC), row.id
