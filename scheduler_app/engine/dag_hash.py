"""When two serialised DAGs are the same version.

The hash sees what the author wrote, not when or where it was parsed. Dates that move with every parse
(``start_date=now() - 1 day``) would make a version of each parse; ``moving_fields`` finds them, so that the caller
keeps the old version and warns by name.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

#: Lists whose order says nothing, by the key that holds them.
_SETS: Final = frozenset({"tags", "owners", "callbacks", "upstream_group_ids", "downstream_group_ids"})
_SETS_OF_IDS: Final = frozenset({"downstream", "upstream_task_ids", "downstream_task_ids"})
#: Facts of one parse.
_OF_A_PARSE: Final = frozenset({"fileloc", "relative_fileloc", "parsed_at", "parse_seconds", "last_parsed_time"})
_OF_A_PLAN: Final = frozenset({"planned", "planned_after"})


def dag_hash(doc: Mapping[str, Any]) -> str:
    """32 hexadecimal digits; equal for documents that mean the same."""
    text = json.dumps(canonical(doc), sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def canonical(doc: Mapping[str, Any]) -> Any:
    """The document without facts of a parse, with sets sorted."""
    return _canonical(doc, "")


def differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Paths (``tasks.extract.retries``) at which two documents differ, sorted; tasks and groups go by id."""
    return sorted(path for path, _, _ in _differences(canonical(old), canonical(new), ""))


def moving_fields(
    old: Mapping[str, Any], new: Mapping[str, Any], *, seconds_between: float, tolerance: float = 5.0
) -> list[str]:
    """The differing paths, when all of them are dates that moved on by just the time between two parses; else []."""
    found = []
    for path, before, after in _differences(canonical(old), canonical(new), ""):
        moved = _moved(before, after)
        if moved is None or abs(moved - seconds_between) > tolerance:
            return []
        found.append(path)
    return sorted(found)


def _canonical(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        left_out = _OF_A_PARSE | _OF_A_PLAN if value.get("kind") == "custom" else _OF_A_PARSE
        if value.get("__type") in ("set", "frozenset"):
            return {**value, "__value": sorted((_canonical(v, "") for v in value["__value"]), key=_text)}
        return {str(k): _canonical(v, str(k)) for k, v in value.items() if k not in left_out}
    if isinstance(value, (list, tuple)):
        items = [_canonical(item, "") for item in value]
        return sorted(items, key=_text) if key in _SETS or key in _SETS_OF_IDS else items
    return value


def _differences(old: Any, new: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            inner = f"{path}.{key}" if path else key
            if key not in old or key not in new:
                yield inner, old.get(key), new.get(key)
            else:
                yield from _differences(_by_id(old[key]), _by_id(new[key]), inner)
    elif old != new:
        yield path, old, new


def _by_id(value: Any) -> Any:
    """A list of tasks or groups as a dict, so that one more task is one difference."""
    if isinstance(value, list) and value and all(isinstance(v, dict) for v in value):
        for key in ("task_id", "group_id"):
            if all(key in v for v in value):
                return {str(v[key]): v for v in value}
    return value


def _moved(before: Any, after: Any) -> float | None:
    """How many seconds a date moved, None when one of the two is no date."""
    try:
        return (datetime.fromisoformat(after) - datetime.fromisoformat(before)).total_seconds()
    except (TypeError, ValueError):
        return None


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
