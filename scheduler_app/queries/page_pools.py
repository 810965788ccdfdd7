"""Who holds the slots of each pool, and who waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from scheduler_app.engine import states
from scheduler_app.models import Pool, TaskInstance, db
from scheduler_app.models.pool import PoolUse

#: Holders, and waiting tasks, that the page names for each pool.
NAMED: Final = 10
#: … out of so many, …
LOOKED_AT: Final = 50
#: … for so many pools.
NAMED_POOLS: Final = 50


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


#: The first of each pool, found pool by pool through an index: ranking all at once sorted every waiting task.
_HEADS: Final = """
SELECT wanted.pool, found.holds, found.id
FROM unnest(%(pools)s::text[]) AS wanted(pool)
CROSS JOIN LATERAL (
    (SELECT true AS holds, id FROM scheduler_task_instance
     WHERE pool = wanted.pool AND state = ANY(%(active)s) ORDER BY queued_when, id LIMIT %(most)s)
    UNION ALL
    (SELECT false, id FROM scheduler_task_instance
     WHERE pool = wanted.pool AND state = 'scheduled'
     ORDER BY priority_weight DESC, scheduled_when, id LIMIT %(most)s)
) found
"""


def pools(visible: QuerySet[TaskInstance]) -> list[PoolRow]:
    """Every pool with its numbers; the busiest :data:`NAMED_POOLS` with holders and the head of their queues.

    Four queries. Named are those of the first :data:`LOOKED_AT` of a pool that the reader may see.
    """
    uses = Pool.objects.use()
    descriptions = dict(Pool.objects.values_list("pool", "description"))
    busy = sorted((use for use in uses.values() if _business(use)), key=_business, reverse=True)
    named = _named(visible, [use.pool for use in busy[:NAMED_POOLS]])
    return [
        PoolRow(use, descriptions.get(name), named.get((name, True), []), named.get((name, False), []))
        for name, use in uses.items()
    ]


def _business(use: PoolUse) -> int:
    return use.running + use.queued + use.deferred + use.scheduled


def _named(visible: QuerySet[TaskInstance], names: list[str]) -> dict[tuple[str, bool], list[Occupant]]:
    """(pool, whether they hold slots) → the first of them, in their order."""
    active = [state for state in states.ACTIVE if state]
    heads = db.fetch(_HEADS, {"pools": names, "active": active, "most": LOOKED_AT})
    records = visible.filter(pk__in=[head[2] for head in heads]).values_list("pk", *OCCUPANT)
    seen = {pk: occupant(*record) for pk, *record in records}
    found: dict[tuple[str, bool], list[Occupant]] = {}
    for pool, holds, pk in heads:
        side = found.setdefault((pool, holds), [])
        if pk in seen and len(side) < NAMED:
            side.append(seen[pk])
    return found


#: What :func:`occupant` takes of a task instance.
OCCUPANT: Final = (
    "dag_id", "dag_run__run_id", "task_id", "map_index", "state", "pool_slots", "priority_weight",
    "start_date", "queued_when", "scheduled_when",
)  # fmt: skip


def occupant(*record: Any) -> Occupant:
    *fields, start, queued, scheduled = record
    since = {"queued": queued, "scheduled": scheduled}.get(fields[4], start or queued)
    return Occupant(*fields, since)
