"""What succeeded attempts did to assets: one event row each, queued for the DAGs that wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduler_app.actions.assets import queue_event
from scheduler_app.models import Asset, AssetAlias, AssetEvent, AssetQueuedEvent, AssetUse
from scheduler_app.runner.claims import Claim


def write(pairs: Sequence[tuple[Claim, Mapping[str, Any]]], now: datetime) -> int:
    """Inside the caller's transaction; how many events were made. `pairs`: (claim, outcome document)."""
    made = 0
    for claim, outcome in pairs:
        for event in outcome.get("asset_events") or ():
            _write_one(claim, event, now)
            made += 1
    return made


def _write_one(claim: Claim, event: Mapping[str, Any], now: datetime) -> None:
    asset = _asset(event, now)
    alias = _alias(event.get("alias"))
    row = AssetEvent.objects.create(
        asset=asset,
        extra=event.get("extra") or {},
        source_dag_id=claim.dag_id,
        source_task_id=claim.task_id,
        source_run_id=claim.run_id,
        source_map_index=claim.map_index,
        source_aliases=[alias.name] if alias is not None else [],
        partition_key=event.get("partition_key"),
        timestamp=now,
    )
    queue_event(row, now)
    if alias is not None:
        alias.assets.add(asset)
        _queue_for_alias(row, alias, now)


def _asset(event: Mapping[str, Any], now: datetime) -> Asset:
    """The asset of that name and address; an attempt may be the first to name it (through an alias)."""
    name = event.get("name") or event.get("uri")
    uri = event.get("uri") or event.get("name")
    known = Asset.objects.filter(name=name)
    if event.get("uri"):
        known = known.filter(uri=uri)
    found = known.order_by("-is_active", "pk").first()
    if found is not None:
        return found
    asset, _ = Asset.objects.get_or_create(
        name=name,
        uri=uri,
        defaults={"group": event.get("group") or "asset", "created_at": now, "updated_at": now},
    )
    return asset


def _alias(name: str | None) -> AssetAlias | None:
    if not name:
        return None
    alias, _ = AssetAlias.objects.get_or_create(name=name)
    return alias


def _queue_for_alias(row: AssetEvent, alias: AssetAlias, now: datetime) -> None:
    """DAGs that are scheduled on the alias itself."""
    uses = AssetUse.objects.filter(kind="schedule", alias=alias, dag__is_stale=False, dag__is_paused=False)
    AssetQueuedEvent.objects.bulk_create(
        [
            AssetQueuedEvent(dag_id=dag_id, asset_id=row.asset_id, event=row, created_at=now)
            for dag_id in sorted(set(uses.values_list("dag_id", flat=True)))
        ],
        ignore_conflicts=True,
    )
