"""What people do to assets: tell of an update that happened elsewhere, drop what is queued for a DAG."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.models import Asset, AssetEvent, AssetQueuedEvent, AssetUse, DagModel, db

from . import journal, permit
from .errors import Missing


def create_event(
    actor: Actor, asset_id: int, now: datetime, *, extra: dict[str, Any] | None = None, partition_key: str | None = None
) -> AssetEvent:
    """An event of an asset, queued for every active, unpaused DAG scheduled on it. Raises Missing, Forbidden."""
    permit.require(actor, "add", "asset_event")
    with db.atomic():
        asset = Asset.objects.filter(pk=asset_id).first()
        if asset is None:
            raise Missing(f"Asset with ID: `{asset_id}` was not found")
        event = AssetEvent.objects.create(
            asset=asset, extra={**(extra or {}), "from_rest_api": True}, partition_key=partition_key, timestamp=now
        )
        queue_event(event, now)
        journal.record(
            actor, "create_asset_event", now, extra={"asset_id": asset_id, "name": asset.name, "event_id": event.pk}
        )
        db.notify()
    return event


def queue_event(event: AssetEvent, now: datetime) -> list[str]:
    """Queues an event for the DAGs scheduled on its asset, inside the caller's transaction; returns their ids."""
    waiting = (
        DagModel.objects.active()
        .unpaused()
        .filter(pk__in=AssetUse.objects.filter(kind="schedule", asset_id=event.asset_id).values("dag_id"))
    )
    dag_ids = sorted(waiting.values_list("pk", flat=True))
    AssetQueuedEvent.objects.bulk_create(
        [AssetQueuedEvent(dag_id=dag_id, asset_id=event.asset_id, event=event, created_at=now) for dag_id in dag_ids],
        ignore_conflicts=True,
    )
    return dag_ids


def delete_queued(
    actor: Actor,
    now: datetime,
    *,
    dag_id: str | None = None,
    asset_id: int | None = None,
    before: datetime | None = None,
) -> int:
    """Deletes queued events of a DAG, of an asset, or of an asset for a DAG; returns how many.

    Raises Missing when there is none, Forbidden.
    """
    permit.require(actor, "delete", "queued_event")
    with db.atomic():
        if dag_id is not None:
            permit.dag_checked(actor, dag_id)
        rows = access.queued_events(actor, "change")
        rows = rows.filter(dag_id=dag_id) if dag_id is not None else rows
        rows = rows.filter(asset_id=asset_id) if asset_id is not None else rows
        rows = rows.filter(created_at__lt=before) if before is not None else rows
        deleted, _ = rows.delete()
        if not deleted:
            raise Missing(_nothing(dag_id, asset_id))
        journal.record(
            actor, "delete_queued_events", now, dag_id=dag_id, extra={"asset_id": asset_id, "deleted": deleted}
        )
    return deleted


def _nothing(dag_id: str | None, asset_id: int | None) -> str:
    of = [f"dag_id: `{dag_id}`"] if dag_id is not None else []
    of += [f"asset_id: `{asset_id}`"] if asset_id is not None else []
    return f"Queue event with {' and '.join(of)} was not found"
