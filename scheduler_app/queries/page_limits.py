"""Keyed limits as people see them: what is taken, by whom, and how many wait."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db.models import Count, QuerySet

from scheduler_app.engine import states
from scheduler_app.engine.limits import decode
from scheduler_app.models import DagModel, Limit, TaskInstance

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
    #: the DAG whose file says how much there is, if the reader may see it
    declared_by: str | None
    by_another: bool
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


def limits(visible: QuerySet[TaskInstance], dags: QuerySet[DagModel], now: datetime) -> list[LimitRow]:
    """Every limit with those that hold it, as far as the reader may see them. At most eight queries."""
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
    seen = set(dags.filter(pk__in=[by for _, by in described.values() if by]).values_list("pk", flat=True))
    rows = []
    for name, use in found.items():
        description, by = described.get(name, (None, None))
        rows.append(LimitRow(use, description, by if by in seen else None, bool(by) and by not in seen, holders[name]))
    return rows
