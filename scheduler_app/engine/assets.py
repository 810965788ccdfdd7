"""Asset conditions: which assets a DAG waits for, and whether a set of updated ones is enough.

A condition is a document (``docs/borders.md`` §1): ``{"asset": {"name", "uri", …}}``, ``{"all": […]}``, ``{"any":
[…]}``, ``{"alias": name}`` (any asset that the alias stands for) or ``{"ref": {"name" | "uri": text}}`` (an asset by
one of its two keys).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

Condition = Mapping[str, Any]


class AssetKey(NamedTuple):
    """What makes an asset unique."""

    name: str
    uri: str


def satisfied(
    condition: Condition,
    updated: Collection[AssetKey],
    aliases: Mapping[str, Collection[AssetKey]] | None = None,
) -> bool:
    """The updated assets fulfil the condition. An alias without assets is never fulfilled, an empty ``all`` neither."""
    known = aliases or {}
    if "all" in condition:
        parts = condition["all"]
        return bool(parts) and all(satisfied(part, updated, known) for part in parts)
    if "any" in condition:
        return any(satisfied(part, updated, known) for part in condition["any"])
    if "alias" in condition:
        return any(key in updated for key in known.get(condition["alias"], ()))
    return any(_matches(condition, key) for key in updated)


def missing(
    condition: Condition,
    updated: Collection[AssetKey],
    aliases: Mapping[str, Collection[AssetKey]] | None = None,
) -> list[str]:
    """Names of what a DAG still waits for, in the order of the condition: inside ``any`` all of it, or nothing."""
    if satisfied(condition, updated, aliases):
        return []
    found: list[str] = []
    for part in condition.get("all", condition.get("any", ())):
        found += missing(part, updated, aliases)
    return list(dict.fromkeys(found)) if found else [_name(leaf) for leaf in leaves(condition)]


def leaves(condition: Condition) -> Iterator[Condition]:
    """The assets, references and aliases of a condition, from left to right."""
    if "all" in condition or "any" in condition:
        for part in condition.get("all", condition.get("any", ())):
            yield from leaves(part)
    else:
        yield condition


def assets_of(condition: Condition) -> list[AssetKey]:
    """The assets that a condition names with both keys, each once."""
    return list(dict.fromkeys(key_of(leaf["asset"]) for leaf in leaves(condition) if "asset" in leaf))


def aliases_of(condition: Condition) -> list[str]:
    return list(dict.fromkeys(leaf["alias"] for leaf in leaves(condition) if "alias" in leaf))


def key_of(asset: Mapping[str, Any]) -> AssetKey:
    """The key of an asset document; one with a name or a uri alone has it as both."""
    return AssetKey(asset.get("name") or asset["uri"], asset.get("uri") or asset["name"])


def _matches(leaf: Condition, key: AssetKey) -> bool:
    if "asset" in leaf:
        return key_of(leaf["asset"]) == key
    ref = leaf["ref"]
    return ref["name"] == key.name if "name" in ref else bool(ref["uri"] == key.uri)


def _name(leaf: Condition) -> str:
    if "asset" in leaf:
        return key_of(leaf["asset"]).name
    if "alias" in leaf:
        return str(leaf["alias"])
    return str(next(iter(leaf["ref"].values())))
