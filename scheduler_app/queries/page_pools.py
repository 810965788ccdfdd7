"""Who holds the slots of each pool, and who waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import F, QuerySet, Window
from django.db.models.functions import RowNumber

from scheduler_app.engine import states
from scheduler_app.models import Pool, TaskInstance
from scheduler_app.models.pool import PoolUse

#: Holders, and waiting tasks, that the page names for each pool.
NAMED: Final = 10


@dataclass(frozen=True, slots=True)
class Occupant:
    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str
    slots: int
    priority: int
    since: datetime | None


@dataclass(frozen=True, slots=True)
class PoolRow:
    use: PoolUse
    description: str | None
    holders: list[Occupant]
    waiting: list[Occupant]


def pools(visible: QuerySet[TaskInstance]) -> list[PoolRow]:
    """Every pool with its numbers, its holders and the head of its queue. Four queries."""
    uses = Pool.objects.use()
    descriptions = dict(Pool.objects.values_list("pool", "description"))
    holders = _named(visible.filter(state__in=[state for state in states.ACTIVE if state]), "queued_when")
    waiting = _named(visible.filter(state=states.SCHEDULED), "-priority_weight", "scheduled_when")
    return [
        PoolRow(use, descriptions.get(name), holders.get(name, []), waiting.get(name, [])) for name, use in uses.items()
    ]


def _named(instances: QuerySet[TaskInstance], *order: str) -> dict[str, list[Occupant]]:
    """The first instances of each pool, in an order."""
    place = Window(RowNumber(), partition_by=F("pool"), order_by=[*order, "id"])
    records = (
        instances.annotate(place=place)
        .filter(place__lte=NAMED)
        .order_by("pool", "place")
        .values_list(
            "pool", "dag_id", "dag_run__run_id", "task_id", "map_index", "state", "pool_slots", "priority_weight",
            "start_date", "queued_when", "scheduled_when",
        )
    )  # fmt: skip
    found: dict[str, list[Occupant]] = {}
    for pool, *record in records:
        found.setdefault(pool, []).append(_occupant(*record))
    return found


def _occupant(*record: Any) -> Occupant:
    *fields, start, queued, scheduled = record
    since = {"queued": queued, "scheduled": scheduled}.get(fields[4], start or queued)
    return Occupant(*fields, since)
