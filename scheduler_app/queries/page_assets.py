"""Assets: who makes each, who needs it, and what happened to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Min, Q, QuerySet

from scheduler_app.models import Asset, AssetEvent, AssetQueuedEvent, DagModel

from . import rows
from .page_slice import page_slice

SIZE: Final = 50
EVENTS: Final = 30
#: DAGs and tasks on each side of an asset that the page names.
NEIGHBOURS: Final = 30


@dataclass(frozen=True, slots=True)
class AssetRow:
    id: int
    name: str
    uri: str
    is_active: bool
    last_event: datetime | None
    #: DAG ids, each once
    producers: list[str]
    consumers: list[str]


@dataclass(frozen=True, slots=True)
class AssetPage:
    rows: list[AssetRow]
    page: int
    more: bool


@dataclass(frozen=True, slots=True)
class Neighbour:
    dag_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Events that a DAG has not used yet."""

    dag_id: str
    events: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Neighbours:
    producers: list[Neighbour]
    #: the DAGs that it schedules
    consumers: list[Neighbour]
    #: tasks that only read it
    readers: list[Neighbour]
    more: int


def asset_page(visible: QuerySet[Asset], text: str, page: int) -> AssetPage:
    """One page by name; another one is known of without counting. Three queries."""
    found = visible
    for word in text.split():
        found = found.filter(Q(name__icontains=word) | Q(uri__icontains=word))
    records, more = page_slice(rows.assets(found.order_by("name", "id")), page, SIZE)
    return AssetPage([_row(one) for one in records], page, more)


def _row(asset: Asset) -> AssetRow:
    uses = list(asset.uses.all())  # fetched with the page
    return AssetRow(
        id=asset.pk,
        name=asset.name,
        uri=asset.uri,
        is_active=asset.is_active,
        last_event=getattr(asset, "last_event_at", None),
        producers=sorted({use.dag_id for use in uses if use.kind == "outlet"}),
        consumers=sorted({use.dag_id for use in uses if use.kind == "schedule"}),
    )


def neighbours(asset: Asset, dags: QuerySet[DagModel]) -> Neighbours:
    """What touches it, of the DAGs that the reader may see. One query."""
    uses = asset.uses.filter(dag__in=dags).order_by("kind", "dag_id", "task_id", "id")
    sides: dict[str, list[Neighbour]] = {"outlet": [], "schedule": [], "inlet": []}
    for kind, dag_id, task_id in uses.values_list("kind", "dag_id", "task_id"):
        one = Neighbour(dag_id, task_id)
        if one not in sides[kind]:
            sides[kind].append(one)
    more = sum(max(0, len(side) - NEIGHBOURS) for side in sides.values())
    return Neighbours(*(side[:NEIGHBOURS] for side in sides.values()), more=more)


def waiting(asset: Asset, visible: QuerySet[AssetQueuedEvent]) -> list[Waiting]:
    """The DAGs that have an event of it and wait for those of other assets. One query."""
    found = visible.filter(asset=asset).order_by().values_list("dag_id")
    return sorted(
        (Waiting(*record) for record in found.annotate(n=Count("id"), since=Min("created_at"))),
        key=lambda one: one.dag_id,
    )


def events(asset: Asset, visible: QuerySet[AssetEvent], page: int) -> tuple[list[AssetEvent], bool]:
    """A page of its events, newest first, with the runs that they set off; whether there are more. Two queries."""
    found = rows.asset_events(visible.filter(asset=asset)).order_by("-timestamp", "-id")
    return page_slice(found, page, EVENTS)
