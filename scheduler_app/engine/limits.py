"""Keyed limits: named capacities that tasks of any DAG share, several for a task, all taken at once or none.

A *concurrency* limit counts the task instances that are active now; a *rate* counts the hand-outs of the last so many
seconds, whatever became of them. What a task takes is written as one text (``crm_api=1,warehouse=2``), which its
instances copy: rows that take the same can be counted, and passed over, together.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from scheduler_app.engine.wording import counted

#: What a limit may be called; ``,`` and ``=`` join the names of a task.
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-:/]{0,127}")


class Take(NamedTuple):
    """What a task takes of one limit."""

    name: str
    units: int = 1


@dataclass(slots=True)
class Allowance:
    """One limit at the time of asking. ``per_seconds`` None: at once; else in every window of so many seconds."""

    amount: int
    per_seconds: float | None = None
    #: units in use, or taken within the window
    used: int = 0
    #: of a rate: when, and how many units, oldest first
    taken: list[tuple[datetime, int]] = field(default_factory=list)

    def charge(self, units: int) -> None:
        self.used += units

    def lacks(self, units: int) -> bool:
        return self.used + units > self.amount

    def free_at(self, units: int) -> datetime | None:
        """When so many units leave the window; None while those that are in the way have only just been taken."""
        left = self.used
        for at, count in self.taken:
            left -= count
            if left + units <= self.amount:
                return at + timedelta(seconds=self.per_seconds or 0.0)
        return None


class Obstacle(NamedTuple):
    """A limit that is in the way: what ``admission.Refusal`` says of it."""

    code: str
    text: str
    facts: dict[str, Any]
    never: bool = False
    until: datetime | None = None


def encode(takes: Iterable[Take]) -> str:
    """One text for what a task takes, the same in whatever order it is given; "" for nothing."""
    return ",".join(f"{name}={units}" for name, units in sorted(takes))


@functools.lru_cache(maxsize=4096)
def decode(text: str) -> tuple[Take, ...]:
    pairs = (part.rpartition("=") for part in text.split(",") if part)
    return tuple(Take(name, int(units)) for name, _, units in pairs)


def of_documents(documents: Iterable[dict[str, Any]]) -> str:
    """The text for the ``limits`` of a serialised task."""
    return encode(Take(one["name"], one.get("units", 1)) for one in documents)


def first_obstacle(takes: Iterable[Take], limits: dict[str, Allowance]) -> Obstacle | None:
    """The first limit that has not what the task takes."""
    for name, units in takes:
        limit = limits.get(name)
        if limit is None:
            text = f"Limit {name} does not exist: create it, or take it out of the task's limits."
            return Obstacle("limit_unknown", text, {"name": name})
        if limit.lacks(units):
            return _obstacle(name, units, limit)
    return None


def _obstacle(name: str, units: int, limit: Allowance) -> Obstacle:
    facts: dict[str, Any] = {"name": name, "limit": limit.amount, "used": limit.used, "needs": units}
    if limit.amount == 0:
        return Obstacle("limit_closed", f"Limit {name} is 0: nothing that needs it starts until it is raised.", facts)
    if units > limit.amount:
        text = f"It can never run: it takes {units} of limit {name}, which has {limit.amount}."
        return Obstacle("limit_too_small", text, facts, never=True)
    needs = f"; it needs {units}" if units > 1 else ""
    if limit.per_seconds is None:
        return Obstacle("limit_full", f"Limit {name} has {limit.amount}, and {limit.used} are taken{needs}.", facts)
    until = limit.free_at(units)
    text = (
        f"Rate {name} lets {counted(limit.amount, 'start')} happen in {limit.per_seconds:g} s, and {limit.used} have"
        f" happened{needs}."
    )
    if until is not None:
        text += f" The next may at {until:%H:%M:%S} ({until:%Z})."
    facts |= {"per_seconds": limit.per_seconds}
    return Obstacle("rate_full", text, facts, until=until)
