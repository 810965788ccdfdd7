"""Assets: what tasks write and read, and what DAGs can be scheduled by. ``Dataset`` is the older name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from scheduler_app import wire

MAX_LENGTH = 1500


class BaseAsset:
    """Anything that can stand in an asset expression: ``a & b``, ``a | b``."""

    def __or__(self, other: Any) -> AssetAny:
        if not isinstance(other, BaseAsset):
            return NotImplemented
        return AssetAny(self, other)

    def __and__(self, other: Any) -> AssetAll:
        if not isinstance(other, BaseAsset):
            return NotImplemented
        return AssetAll(self, other)

    def to_condition(self) -> dict[str, Any]:
        """The condition document of docs/borders.md §1."""
        raise NotImplementedError

    def iter_leaves(self) -> Iterator[BaseAsset]:
        yield self


class AssetAccessControl:
    """Which teams may produce events for consumers of the asset; carried, for later use by the API."""

    def __init__(
        self,
        producer_teams: list[str] | None = None,
        consumer_teams: list[str] | None = None,
        allow_global: bool = True,
    ) -> None:
        self.producer_teams, self.consumer_teams = list(producer_teams or []), list(consumer_teams or [])
        self.allow_global = allow_global


class AssetWatcher:
    """A trigger whose events update the asset."""

    def __init__(self, name: str, trigger: Any) -> None:
        self.name, self.trigger = name, trigger

    def to_doc(self) -> dict[str, Any]:
        classpath, kwargs = self.trigger.serialize()
        return {"name": self.name, "trigger": {"classpath": classpath, "kwargs": wire.encode(kwargs, "trigger")}}


class Asset(BaseAsset):
    """A named thing at a URI. One text is both. Raises ValueError for an empty or too long name or URI."""

    def __init__(
        self,
        name: str | None = None,
        uri: Any = None,
        *,
        group: str = "asset",
        extra: dict[str, Any] | None = None,
        watchers: list[AssetWatcher] | None = None,
        access_control: AssetAccessControl | None = None,
    ) -> None:
        if name is None and uri is None:
            raise TypeError("An asset needs a name or a uri.")
        self.uri = _text("uri", uri if uri is not None else name)
        self.name = _text("name", name if name is not None else uri)
        self.group = group
        self.extra = dict(extra or {})
        self.watchers = list(watchers or [])
        self.access_control = access_control
        if self.uri.startswith("airflow:"):
            raise ValueError(f"The scheme of {self.uri!r} is reserved: use another one.")

    @staticmethod
    def ref(*, name: str | None = None, uri: str | None = None) -> AssetRef:
        """A reference to an asset that another file defines."""
        if (name is None) == (uri is None):
            raise TypeError("Asset.ref() takes a name or a uri, and not both.")
        return AssetRef(name=name, uri=uri)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Asset) and (self.name, self.uri) == (other.name, other.uri)

    def __hash__(self) -> int:
        return hash((self.name, self.uri))

    def __repr__(self) -> str:
        return f"Asset(name={self.name!r}, uri={self.uri!r})"

    @property
    def normalized_uri(self) -> str:
        return self.uri

    def to_doc(self) -> dict[str, Any]:
        doc: dict[str, Any] = {"name": self.name, "uri": self.uri, "group": self.group, "extra": self.extra}
        if self.watchers:
            doc["watchers"] = [watcher.to_doc() for watcher in self.watchers]
        return doc

    def to_condition(self) -> dict[str, Any]:
        return {"asset": self.to_doc()}


class Dataset(Asset):
    """The name of assets in Airflow 2: ``Dataset("s3://…", extra=…)``."""

    def __init__(
        self, uri: Any = None, extra: dict[str, Any] | None = None, *, name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(name=name, uri=uri, extra=extra, **kwargs)


class Model(Asset):
    """An asset of group ``model``."""

    def __init__(self, name: str | None = None, uri: Any = None, **kwargs: Any) -> None:
        super().__init__(name, uri, **{"group": "model", **kwargs})


class AssetRef(BaseAsset):
    """Stands for an asset that is known by name or URI only."""

    def __init__(self, name: str | None = None, uri: str | None = None) -> None:
        self.name, self.uri = name, uri

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetRef) and (self.name, self.uri) == (other.name, other.uri)

    def __hash__(self) -> int:
        return hash((AssetRef, self.name, self.uri))

    def __repr__(self) -> str:
        return f"Asset.ref({'name' if self.name else 'uri'}={self.name or self.uri!r})"

    def to_doc(self) -> dict[str, Any]:
        return {"ref": {"name": self.name} if self.name else {"uri": self.uri}}

    def to_condition(self) -> dict[str, Any]:
        return self.to_doc()


class AssetNameRef(AssetRef):
    def __init__(self, name: str) -> None:
        super().__init__(name=name)


class AssetUriRef(AssetRef):
    def __init__(self, uri: str) -> None:
        super().__init__(uri=uri)


class AssetAlias(BaseAsset):
    """A name under which tasks decide at run time which assets they updated."""

    def __init__(self, name: str, group: str = "asset") -> None:
        self.name, self.group = _text("name", name), group

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AssetAlias) and self.name == other.name

    def __hash__(self) -> int:
        return hash((AssetAlias, self.name))

    def __repr__(self) -> str:
        return f"AssetAlias({self.name!r})"

    def to_doc(self) -> dict[str, Any]:
        return {"alias": self.name}

    def to_condition(self) -> dict[str, Any]:
        return self.to_doc()


class _Combined(BaseAsset):
    key: str

    def __init__(self, *objects: Any) -> None:
        for item in objects:
            if not isinstance(item, BaseAsset):
                raise TypeError(f"Asset expressions are made of assets; got {item!r}.")
        self.objects = list(objects)

    def iter_leaves(self) -> Iterator[BaseAsset]:
        for item in self.objects:
            yield from item.iter_leaves()

    def to_condition(self) -> dict[str, Any]:
        return {self.key: [item.to_condition() for item in self.objects]}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.objects == other.objects  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((self.key, tuple(self.objects)))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.objects))})"


class AssetAny(_Combined):
    """One of them was updated."""

    key = "any"

    def __or__(self, other: Any) -> AssetAny:
        return AssetAny(*self.objects, other) if isinstance(other, BaseAsset) else NotImplemented


class AssetAll(_Combined):
    """All of them were updated."""

    key = "all"

    def __and__(self, other: Any) -> AssetAll:
        return AssetAll(*self.objects, other) if isinstance(other, BaseAsset) else NotImplemented


class Metadata:
    """What a task yields to say something about the event of an asset: ``yield Metadata(asset, {"rows": 3})``."""

    def __init__(self, asset: Any, extra: dict[str, Any] | None = None, alias: Any = None) -> None:
        if isinstance(asset, str):
            raise TypeError("Metadata takes the Asset object, not its uri.")
        self.asset, self.extra, self.alias = asset, dict(extra or {}), alias


def _text(what: str, value: Any) -> str:
    text = str(value) if value is not None else ""
    if not text.strip():
        raise ValueError(f"An asset's {what} cannot be empty.")
    if len(text) > MAX_LENGTH:
        raise ValueError(f"An asset's {what} has at most {MAX_LENGTH} characters: {text[:40]!r}…")
    return text


def _from_document(document: dict[str, Any]) -> Asset:
    return Asset(**{name: document[name] for name in ("name", "uri", "group", "extra") if name in document})


# An asset may be an XCom, or an argument of a trigger; its watchers stay behind.
wire.extend(
    Asset,
    "asset",
    lambda asset: {name: getattr(asset, name) for name in ("name", "uri", "group", "extra")},
    _from_document,
)
wire.extend(
    AssetAlias,
    "asset_alias",
    lambda alias: {"name": alias.name, "group": alias.group},
    lambda document: AssetAlias(**document),
)
