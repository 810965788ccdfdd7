"""Keyed limits as people see them: what is taken, by whom, and how many wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Count, QuerySet

from scheduler_app.engine import states
from scheduler_app.engine.limits import decode
from scheduler_app.models import Limit, TaskInstance

from .page_pools import OCCUPANT, Occupant, occupant

#: Holders that the page names for each limit.
NAMED: Final = 10
_ACTIVE: Final = [one for one in states.ACTIVE if one]


@dataclass(frozen=True, slots=True)
class LimitUse:
    """The numbers of one limit. ``free_at``: when a rate that is used up has room again."""

    name: str
    amount: int
    per_seconds: float | None
    used: int
    waiting: int
    free_at: datetime | None


@dataclass(frozen=True, slots=True)
class LimitRow:
    use: LimitUse
    description: str | None
    declared_by: str | None
    holders: list[Occupant] = field(default_factory=list)


def uses(now: datetime) -> dict[str, LimitUse]:
    """Every limit by name. At most four queries."""
    allowances = Limit.objects.allowances(now)
    waiting: Counter[str] = Counter()
    if allowances:
        scheduled = TaskInstance.objects.filter(state=states.SCHEDULED).exclude(limits="")
        for text, count in scheduled.values_list("limits").annotate(n=Count("id")).order_by():
            for name, _ in decode(text):
                waiting[name] += count
    return {
        name: LimitUse(
            name, one.amount, one.per_seconds, one.used, waiting[name], one.free_at(1) if one.lacks(1) else None
        )
        for name, one in sorted(allowances.items())
    }


def limits(visible: QuerySet[TaskInstance], now: datetime) -> list[LimitRow]:
    """Every limit with those that hold it, as far as the reader may see them. At most seven queries."""
    found = uses(now)
    if not found:
        return []
    described = {name: rest for name, *rest in Limit.objects.values_list("name", "description", "declared_by")}
    holders: dict[str, list[Occupant]] = defaultdict(list)
    active = visible.filter(state__in=_ACTIVE).exclude(limits="").order_by("queued_when", "id")
    for text, *record in active.values_list("limits", *OCCUPANT):
        for name, units in decode(text):
            if name in found and len(holders[name]) < NAMED:
                holders[name].append(occupant(*record[:5], units, *record[6:]))
    return [LimitRow(use, *described.get(name, (None, None)), holders[name]) for name, use in found.items()]
