"""Which assets a DAG waits for, reads and updates: rows, rewritten only when they differ."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app.models import Asset, AssetAlias, AssetUse, DagModel

Json = Any


class Use(NamedTuple):
    """One use: an asset by (name, uri), or an alias by its name."""

    kind: str
    task_id: str
    asset: tuple[str, str] | None
    alias: str | None


def store_uses(row: DagModel, document: Json, now: datetime) -> None:
    """Makes the uses of the DAG those of its document; new assets and aliases get their rows."""
    assets: dict[tuple[str, str], Json] = {}
    aliases: dict[str, Json] = {}
    wanted: dict[Use, None] = {}
    for kind, task_id, item in _named(document):
        if "alias" in item:
            name = item["alias"] if isinstance(item["alias"], str) else item["alias"]["name"]
            aliases.setdefault(name, item)
            wanted[Use(kind, task_id, None, name)] = None
        elif asset := _asset(item):
            key = (asset["name"], asset["uri"])
            assets.setdefault(key, asset)
            wanted[Use(kind, task_id, key, None)] = None
    known = {_use_of(use): use for use in row.asset_uses.select_related("asset", "alias")}
    if not wanted and not known:
        return
    rows = _asset_rows(assets, now)
    alias_rows = _alias_rows(aliases)
    gone = [use for key, use in known.items() if key not in wanted]
    AssetUse.objects.filter(pk__in=[use.pk for use in gone]).delete()
    AssetUse.objects.bulk_create(
        AssetUse(
            dag=row,
            kind=use.kind,
            task_id=use.task_id,
            asset=rows[use.asset] if use.asset else None,
            alias=alias_rows[use.alias] if use.alias else None,
            created_at=now,
        )
        for use in wanted
        if use not in known
    )
    _close_unused([use.asset_id for use in gone if use.asset_id is not None])


def _named(document: Json) -> Iterator[tuple[str, str, Json]]:
    timetable = document.get("timetable") or {}
    for item in leaves(timetable.get("condition")):
        yield "schedule", "", item
    for task in document.get("tasks", ()):
        for kind, key in (("outlet", "outlets"), ("inlet", "inlets")):
            for item in task.get(key, ()):
                yield kind, task["task_id"], item


def leaves(condition: Json) -> Iterator[Json]:
    """The assets, aliases and references of a condition, in order."""
    if not isinstance(condition, dict):
        return
    for operator in ("all", "any"):
        for item in condition.get(operator, ()):
            yield from leaves(item)
    if condition.keys() & {"asset", "alias", "ref"}:
        yield condition


def _asset(item: Json) -> Json:
    """The asset of a use: given in full, or by a reference to one that exists already; None when it does not."""
    if "ref" in item:
        found = Asset.objects.filter(**{key: item["ref"][key] for key in ("name", "uri") if key in item["ref"]})
        row = found.order_by("-is_active", "id").first()
        return None if row is None else {"name": row.name, "uri": row.uri, "group": row.group, "extra": row.extra}
    asset = item.get("asset", item)
    if "name" not in asset and "uri" not in asset:
        return None
    name = asset.get("name") or asset["uri"]
    return {**asset, "name": name, "uri": asset.get("uri") or name}


def _use_of(use: AssetUse) -> Use:
    return Use(
        use.kind,
        use.task_id,
        (use.asset.name, use.asset.uri) if use.asset else None,
        use.alias.name if use.alias else None,
    )


def _asset_rows(assets: dict[tuple[str, str], Json], now: datetime) -> dict[tuple[str, str], Asset]:
    if not assets:
        return {}
    names = [name for name, _ in assets]
    found = {(row.name, row.uri): row for row in Asset.objects.filter(name__in=names)}
    missing = sorted(assets.keys() - found.keys())
    if missing:
        Asset.objects.bulk_create(
            [
                Asset(
                    name=name,
                    uri=uri,
                    group=assets[name, uri].get("group") or "asset",
                    extra=assets[name, uri].get("extra") or {},
                    created_at=now,
                    updated_at=now,
                )
                for name, uri in missing
            ],
            ignore_conflicts=True,
        )
        found = {(row.name, row.uri): row for row in Asset.objects.filter(name__in=names)}
    for key, asset in sorted(assets.items()):
        _refresh(found[key], asset, now)
    return found


def _refresh(row: Asset, asset: Json, now: datetime) -> None:
    wanted = {"group": asset.get("group") or "asset", "extra": asset.get("extra") or {}, "is_active": True}
    # A use that says nothing of group or extra does not take away what another one says.
    said = {"is_active", *(name for name in ("group", "extra") if asset.get(name))}
    changed = [name for name in wanted if name in said and getattr(row, name) != wanted[name]]
    if changed:
        for name in changed:
            setattr(row, name, wanted[name])
        row.updated_at = now
        row.save(update_fields=[*changed, "updated_at"])


def _alias_rows(aliases: dict[str, Json]) -> dict[str, AssetAlias]:
    if not aliases:
        return {}
    found = {row.name: row for row in AssetAlias.objects.filter(name__in=list(aliases))}
    missing = sorted(aliases.keys() - found.keys())
    if missing:
        AssetAlias.objects.bulk_create(
            [AssetAlias(name=name, group=aliases[name].get("group") or "asset") for name in missing],
            ignore_conflicts=True,
        )
        found = {row.name: row for row in AssetAlias.objects.filter(name__in=list(aliases))}
    return found


def _close_unused(asset_ids: list[int]) -> None:
    """An asset that no DAG uses any more is no longer listed; its events stay."""
    if asset_ids:
        used = AssetUse.objects.filter(asset_id__in=asset_ids).values("asset_id")
        Asset.objects.filter(pk__in=asset_ids).exclude(pk__in=used).update(is_active=False)
