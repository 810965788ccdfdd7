"""``limits=`` of a task: named capacities that tasks of any DAG share.

    @task(limits=[Limit("warehouse", at_once=4), Rate("crm_api", per_minute=60)])

A name alone (``limits=["warehouse"]``, or a Limit without a number) uses a limit that a person or another file made.
The number in a file makes the limit when there is none; a person may change it, and then the person's number holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from scheduler_app.engine.limits import NAME

_SECONDS = {"per_second": 1.0, "per_minute": 60.0, "per_hour": 3600.0, "per_day": 86_400.0}


@dataclass(frozen=True)
class Limit:
    """At most ``at_once`` units are taken at any time; a task takes ``units`` from its hand-out to its end."""

    name: str
    at_once: int | None = None
    units: int = 1

    def to_doc(self) -> dict[str, Any]:
        return _document(self.name, self.units, self.at_once, None)


@dataclass(frozen=True)
class Rate:
    """So many starts in every window of that length; each try, and each look of a sensor that reschedules, is one.

    Give one of ``per_second``, ``per_minute``, ``per_hour`` and ``per_day``, or none for a rate that exists.
    """

    name: str
    per_second: int | None = None
    per_minute: int | None = None
    per_hour: int | None = None
    per_day: int | None = None
    units: int = 1

    def to_doc(self) -> dict[str, Any]:
        given = [(getattr(self, field), seconds) for field, seconds in _SECONDS.items()]
        wanted = [(amount, seconds) for amount, seconds in given if amount is not None]
        if len(wanted) > 1:
            raise ValueError(f"Rate {self.name!r} has {len(wanted)} numbers: give one of {', '.join(_SECONDS)}.")
        return _document(self.name, self.units, *(wanted[0] if wanted else (None, None)))


def _document(name: Any, units: Any, amount: Any, per_seconds: float | None) -> dict[str, Any]:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ValueError(
            f"A limit is called {name!r}: use up to 128 letters, digits and _ . - : /, and none of the last four first."
        )
    for what, value in (("units", units), ("its number", amount)):
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError(f"Limit {name!r}: {what} is a whole number from 1 up, not {value!r}.")
    if amount is not None and units > amount:
        raise ValueError(f"Limit {name!r} has {amount}, so no task can take {units} units of it.")
    document: dict[str, Any] = {"name": name}
    if units != 1:
        document["units"] = units
    if amount is not None:
        document["amount"] = amount
        if per_seconds is not None:
            document["per_seconds"] = per_seconds
    return document


def read(value: Any, task_id: str) -> list[dict[str, Any]]:
    """The documents of a task's ``limits``, by name. Raises TypeError or ValueError that names the task."""
    if value is None:
        return []
    given = list(value) if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    found: dict[str, dict[str, Any]] = {}
    for one in given:
        if isinstance(one, str):
            one = Limit(one)
        if not isinstance(one, (Limit, Rate)):
            raise TypeError(f"limits of task {task_id!r} are names, Limit(…) and Rate(…), not {one!r}.")
        try:
            document = one.to_doc()
        except ValueError as error:
            raise ValueError(f"limits of task {task_id!r}: {error}") from None
        if document["name"] in found:
            raise ValueError(f"Task {task_id!r} names limit {document['name']!r} twice: give it once, with units=….")
        found[document["name"]] = document
    return [found[name] for name in sorted(found)]


__all__ = ["Limit", "Rate", "read"]
