"""How many instances a mapped task has: the length of what it is mapped over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final, NamedTuple

from scheduler_app.engine.states import FAILED, FINISHED, REMOVED, SKIPPED, SUCCESS, UPSTREAM_FAILED

#: ``Ti.map_length`` of an instance that pushed a value which has no length (a number, say).
#: Enough for one element of a mapped upstream, not for a value that is to be mapped over.
NO_LENGTH: Final = -1


class Length(NamedTuple):
    """A known length, or why there is none: ``waiting`` | ``failed`` | ``skipped``, and because of which tasks."""

    value: int | None
    why: str = ""
    tasks: tuple[str, ...] = ()


class Source(NamedTuple):
    """One instance of a task that somebody maps over: its state, and ``map_length`` as in ``readiness.Ti``."""

    map_index: int
    state: str | None
    map_length: int | None


Sources = Callable[[str], Sequence[Source]]


def literal_length(documents: Sequence[Any]) -> int | None:
    """The product of MapInput documents whose lengths need no value of another task, else None."""
    return product([map_length(mapped, lambda task_id: ()) for mapped in documents]).value


def map_sources(mapped: Any) -> list[str]:
    """Ids of the tasks whose pushed values decide the length of a MapInput document (None: no tasks)."""
    found: list[str] = []
    queue = list(mapped["inputs"].values()) if mapped else []
    while queue:
        ref = queue.pop()
        if "xcom" in ref:
            found.append(ref["xcom"])
        queue.extend(ref.get("zip", ()))
        queue.extend(ref.get("concat", ()))
        if "map" in ref:
            queue.append(ref["map"])
    return found


def map_length(mapped: Any, sources: Sources) -> Length:
    """The length of a MapInput document: the product of its inputs (of ``expand_kwargs``: that of its one input)."""
    return _combine([_ref(ref, sources) for ref in mapped["inputs"].values()], prod)


def product(lengths: Sequence[Length]) -> Length:
    """Mapped groups inside each other: every element of the outer one has all of the inner one."""
    return _combine(lengths, prod)


def _ref(ref: Any, sources: Sources) -> Length:
    if "literal" in ref:
        return Length(ref["literal"])
    if "maplength" in ref:
        return Length(ref["maplength"])
    if "xcom" in ref:
        return _pushed(ref["xcom"], sources(ref["xcom"]))
    if "map" in ref:
        return _ref(ref["map"], sources)
    if "zip" in ref:
        return _combine([_ref(part, sources) for part in ref["zip"]], max if ref.get("fill") else min)
    if "concat" in ref:
        return _combine([_ref(part, sources) for part in ref["concat"]], sum)
    raise ValueError(f"A mapped input has an unknown form ({', '.join(sorted(ref))}): parse the DAG file again.")


def _pushed(task_id: str, rows: Sequence[Source]) -> Length:
    rows = [row for row in rows if row.state != REMOVED]
    if any(row.map_index >= 0 for row in rows):
        if any(row.state not in FINISHED for row in rows):
            return Length(None, "waiting", (task_id,))
        return Length(sum(row.map_length is not None for row in rows))
    if not rows:
        return Length(None, "waiting", (task_id,))
    row = rows[0]
    if row.state == SUCCESS:
        known = row.map_length is not None and row.map_length != NO_LENGTH
        return Length(row.map_length) if known else Length(None, "failed", (task_id,))
    if row.state in (FAILED, UPSTREAM_FAILED):
        return Length(None, "failed", (task_id,))
    return Length(None, "skipped" if row.state == SKIPPED else "waiting", (task_id,))


def _combine(parts: Sequence[Length], join: Callable[[list[int]], int]) -> Length:
    """A failure wins over a skip, a skip over waiting: either is decided before all inputs are there."""
    for why in ("failed", "skipped", "waiting"):
        blamed = tuple(task_id for part in parts if part.why == why for task_id in part.tasks)
        if blamed:
            return Length(None, why, blamed)
    return Length(join([part.value for part in parts if part.value is not None]))
