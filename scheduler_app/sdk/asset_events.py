"""Events of assets as tasks read them: those that started the run, and those of their inlets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scheduler_app.sdk.assets import Asset, AssetAlias, AssetRef
from scheduler_app.sdk.runs import moment
from scheduler_app.sdk.runtime import current_port


class AssetEvent:
    """One update of an asset."""

    def __init__(self, document: dict[str, Any]) -> None:
        asset = document.get("asset") or {}
        self.id = document.get("id")
        self.name: str | None = asset.get("name") or document.get("name")
        self.uri: str | None = asset.get("uri") or document.get("uri")
        self.asset = Asset(name=self.name, uri=self.uri, group=asset.get("group", "asset"), extra=asset.get("extra"))
        self.extra: dict[str, Any] = document.get("extra") or {}
        self.timestamp = moment(document.get("timestamp"))
        self.source_dag_id = document.get("source_dag_id")
        self.source_task_id = document.get("source_task_id")
        self.source_run_id = document.get("source_run_id")
        self.source_map_index = document.get("source_map_index", -1)
        self.partition_key = document.get("partition_key")
        self.aliases: list[str] = [
            alias if isinstance(alias, str) else alias["name"] for alias in document.get("aliases") or ()
        ]

    def __repr__(self) -> str:
        return f"AssetEvent(asset={self.asset!r}, timestamp={self.timestamp}, extra={self.extra!r})"

    @property
    def source_dag_run(self) -> Any:
        from scheduler_app.sdk.runs import DagRun

        if not self.source_dag_id or not self.source_run_id:
            return None
        return DagRun({"dag_id": self.source_dag_id, "run_id": self.source_run_id})

    @property
    def source_task_instance(self) -> Any:
        from scheduler_app.sdk.runs import TaskInstanceView

        if not (self.source_dag_id and self.source_run_id and self.source_task_id):
            return None
        return TaskInstanceView(
            self.source_dag_id, self.source_run_id, self.source_task_id, self.source_map_index, None
        )


class TriggeringEvents(Mapping[Any, Sequence[AssetEvent]]):
    """asset (or its URI, or an alias) → the events that started the run."""

    def __init__(self, documents: list[dict[str, Any]]) -> None:
        self._events: dict[Any, list[AssetEvent]] = {}
        for document in documents:
            event = AssetEvent(document)
            self._events.setdefault(event.asset, []).append(event)
            for alias in event.aliases:
                self._events.setdefault(AssetAlias(alias), []).append(event)

    def _find(self, key: Any) -> Any:
        if isinstance(key, str):
            key = AssetRef(uri=key)
        if isinstance(key, AssetRef):
            for asset in self._events:
                if (
                    isinstance(asset, Asset)
                    and (key.name or asset.name) == asset.name
                    and (key.uri or asset.uri) == asset.uri
                ):
                    return asset
        return key

    def __getitem__(self, key: Any) -> list[AssetEvent]:
        return self._events[self._find(key)]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def __repr__(self) -> str:
        return f"TriggeringEvents({self._events!r})"

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> list[AssetEvent]:
        return self[AssetRef(name=name, uri=uri)]

    def for_asset_alias(self, name: str) -> list[AssetEvent]:
        return self[AssetAlias(name)]


class EventSequence(Sequence[AssetEvent]):
    """The events of one inlet, oldest first, fetched when first looked at; ``after``, ``before``, ``limit`` narrow
    it."""

    def __init__(self, key: Any, **filters: Any) -> None:
        self._key, self._filters = key, filters
        self._events: list[AssetEvent] | None = None

    def after(self, after: Any) -> EventSequence:
        return EventSequence(self._key, **{**self._filters, "after": after})

    def before(self, before: Any) -> EventSequence:
        return EventSequence(self._key, **{**self._filters, "before": before})

    def ascending(self, ascending: bool = True) -> EventSequence:
        return EventSequence(self._key, **{**self._filters, "ascending": ascending})

    def limit(self, limit: int) -> EventSequence:
        return EventSequence(self._key, **{**self._filters, "limit": limit})

    def _all(self) -> list[AssetEvent]:
        if self._events is None:
            port = current_port()
            if isinstance(self._key, AssetAlias):
                found = port.get_asset_alias_events(name=self._key.name, **self._filters)
            else:
                found = port.get_asset_events(name=self._key.name, uri=self._key.uri, **self._filters)
            self._events = [AssetEvent(document) for document in found]
        return self._events

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __repr__(self) -> str:
        return f"<events of {self._key!r}>"


class InletEvents:
    """``inlet_events[asset]``: by asset, reference, alias, or position among the inlets."""

    def __init__(self, inlets: list[Any]) -> None:
        self._inlets = [inlet for inlet in inlets if isinstance(inlet, (Asset, AssetRef, AssetAlias))]

    def __getitem__(self, key: Any) -> EventSequence:
        if isinstance(key, int):
            key = self._inlets[key]
        if not isinstance(key, (Asset, AssetRef, AssetAlias)):
            raise TypeError(f"inlet_events takes an Asset, an AssetAlias, or the position of an inlet, not {key!r}.")
        return EventSequence(key)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inlets)

    def __len__(self) -> int:
        return len(self._inlets)

    def __repr__(self) -> str:
        return f"InletEvents({self._inlets!r})"

    def for_asset(self, *, name: str | None = None, uri: str | None = None) -> EventSequence:
        return self[AssetRef(name=name, uri=uri)]

    def for_asset_alias(self, name: str) -> EventSequence:
        return self[AssetAlias(name)]
