"""What a task says about the assets that it updated: ``outlet_events[asset].extra = {…}``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from scheduler_app.sdk.assets import Asset, AssetAlias, AssetRef, Metadata

log = logging.getLogger("airflow.task")


class OutletEvent:
    """The event of one outlet: its extra, its partitions, and for an alias the assets added to it."""

    def __init__(self, key: Any) -> None:
        self.key = key
        self.extra: dict[str, Any] = {}
        self.added: list[tuple[Asset, dict[str, Any]]] = []
        self.partition_keys: list[str] = []

    def add(self, asset: Asset, extra: dict[str, Any] | None = None) -> None:
        """Says that the asset of an alias was updated. Raises TypeError for an outlet that is no alias."""
        if not isinstance(self.key, AssetAlias):
            raise TypeError(f"add() is for an AssetAlias; {self.key!r} is an asset already.")
        self.added.append((asset, dict(extra or {})))

    def add_partitions(self, keys: str | list[str]) -> None:
        """One event for each partition key."""
        for key in [keys] if isinstance(keys, str) else keys:
            if key not in self.partition_keys:
                self.partition_keys.append(key)


class OutletEvents:
    """By asset, reference or alias. Raises KeyError for what is no outlet of the task."""

    def __init__(self, outlets: list[Any]) -> None:
        self._events: dict[Any, OutletEvent] = {}
        for outlet in outlets:
            if isinstance(outlet, (Asset, AssetRef, AssetAlias)):
                self._events[_key(outlet)] = OutletEvent(outlet)

    def __getitem__(self, outlet: Any) -> OutletEvent:
        for key in _keys(outlet):
            if key in self._events:
                return self._events[key]
        event = OutletEvent(outlet)
        self._events[_key(outlet)] = event
        return event

    def __iter__(self) -> Iterator[Any]:
        return (event.key for event in self._events.values())

    def __len__(self) -> int:
        return len(self._events)

    def __contains__(self, outlet: Any) -> bool:
        return any(key in self._events for key in _keys(outlet))

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> OutletEvent:
        return self[Asset(name=name, uri=uri) if name and uri else AssetRef(name=name, uri=uri)]

    def for_asset_alias(self, name: str) -> OutletEvent:
        return self[AssetAlias(name)]

    def documents(self, outlets: list[Any], partition_key: str | None = None) -> list[dict[str, Any]]:
        """The ``asset_events`` of an outcome, for a task that succeeded."""
        found: list[dict[str, Any]] = []
        for outlet in outlets:
            if not isinstance(outlet, (Asset, AssetRef, AssetAlias)):
                continue
            event = self[outlet]
            if isinstance(outlet, AssetAlias):
                found.extend(
                    _document(asset, extra or event.extra, partition_key, alias=outlet.name)
                    for asset, extra in event.added
                )
                continue
            for key in event.partition_keys or [partition_key]:
                found.append(_document(outlet, event.extra, key))
        return found


def _document(asset: Any, extra: dict[str, Any], partition_key: str | None, alias: str | None = None) -> dict[str, Any]:
    return {"name": asset.name, "uri": asset.uri, "alias": alias, "extra": extra, "partition_key": partition_key}


def _key(outlet: Any) -> Any:
    if isinstance(outlet, AssetAlias):
        return ("alias", outlet.name)
    if isinstance(outlet, AssetRef):
        return ("name", outlet.name) if outlet.name else ("uri", outlet.uri)
    if isinstance(outlet, Asset):
        return ("asset", outlet.name, outlet.uri)
    raise TypeError(f"outlet_events takes an Asset or an AssetAlias, not {outlet!r}.")


def _keys(outlet: Any) -> list[Any]:
    keys = [_key(outlet)]
    if isinstance(outlet, Asset):
        keys += [("name", outlet.name), ("uri", outlet.uri)]
    return keys


def take_metadata(results: Any, events: OutletEvents) -> Any:
    """Runs a generator to its end; yielded Metadata go to their events. Gives what the generator returned."""
    while True:
        try:
            item = next(results)
        except StopIteration as end:
            return end.value
        if not isinstance(item, Metadata):
            log.warning("The task yielded %r, which is no Metadata: it is ignored.", item)
            continue
        if item.alias is not None:
            alias = item.alias if isinstance(item.alias, AssetAlias) else AssetAlias(item.alias)
            events[alias].add(item.asset, item.extra)
        else:
            events[item.asset].extra.update(item.extra)
