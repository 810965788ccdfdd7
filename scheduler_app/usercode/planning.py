"""Schedules of an author's own class: their next slots, and the data intervals of manual runs, asked in the child.

Our side never imports the class; it works with the slots that are planned here at each parse (docs/borders.md §7).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.timetables import DataInterval, TimeRestriction, Timetable

Json = Any

#: Slots of one plan; the file is parsed again before they are used up.
SLOTS = 64


class Planner:
    """Visits each parsed DAG. `facts`: ``last_slots``, ``manual`` and ``ranges`` of docs/borders.md §7."""

    def __init__(self, facts: Mapping[str, Json]) -> None:
        self._last_slots: Mapping[str, Json] = facts.get("last_slots") or {}
        self._manual: Mapping[str, Json] = facts.get("manual") or {}
        #: by the key of the manual run: ``{"start", "end"}`` or ``{"error"}``
        self.intervals: dict[str, Json] = {}
        self._ranges: Mapping[str, Json] = facts.get("ranges") or {}
        #: by the key of the backfill: its slots, or ``{"error"}``
        self.ranges: dict[str, Json] = {}

    def visit(self, dag: Any, document: dict[str, Json]) -> None:
        """Adds the planned slots to the document. Raises what the author's class raises."""
        timetable, its_document = _custom(dag.timetable, document.get("timetable") or {})
        if timetable is None:
            return
        last = self._last_slots.get(dag.dag_id)
        its_document["planned"] = plan(timetable, _interval(last), _restriction(document))
        its_document["planned_after"] = last["end"] if last else None
        for key, run_after in (self._manual.get(dag.dag_id) or {}).items():
            self.intervals[key] = infer(timetable, _instant(run_after))
        for key, asked in (self._ranges.get(dag.dag_id) or {}).items():
            self.ranges[key] = slots_between(timetable, _instant(asked["start"]), _instant(asked["end"]), asked["most"])


def plan(timetable: Timetable, last: DataInterval | None, restriction: TimeRestriction) -> list[dict[str, Json]]:
    """The next slots after the interval of the last created one. ValueError when the schedule does not move on."""
    slots: list[dict[str, Json]] = []
    if not timetable.can_be_scheduled:
        return slots
    before: Any = None
    while len(slots) < SLOTS:
        info = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
        if info is None:
            break
        if before is not None and info.run_after <= before:
            raise ValueError(
                f"{type(timetable).__name__}.next_dagrun_info() gave {info.run_after} after {before}: each answer "
                "must lie after the one before."
            )
        before, last = info.run_after, info.data_interval or DataInterval.exact(info.run_after)
        slots.append(_slot(info))
    return slots


def slots_between(timetable: Timetable, start: Any, end: Any, most: int) -> Json:
    """The slots whose logical date (or run) lies in [start, end], oldest first; or the error of the author's class.

    More than ``most`` are one more than that, which tells that there are too many.
    """
    restriction = TimeRestriction(earliest=start, latest=end, catchup=True)
    slots: list[dict[str, Json]] = []
    last = before = None
    try:
        for _ in range(2 * most):
            info = timetable.next_dagrun_info(last_automated_data_interval=last, restriction=restriction)
            if info is None:
                break
            at = getattr(info, "logical_date", None) or info.run_after
            if at > end or len(slots) > most:
                break
            if before is not None and info.run_after <= before:
                raise ValueError(f"next_dagrun_info() gave {info.run_after} after {before}")
            before, last = info.run_after, info.data_interval or DataInterval.exact(info.run_after)
            if at >= start:
                slots.append(_slot(info))
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return slots


def infer(timetable: Timetable, run_after: Any) -> dict[str, Json]:
    """The data interval of a manual run, or the error that the author's class raised."""
    try:
        interval = timetable.infer_manual_data_interval(run_after=run_after)
        return {"start": _iso(interval.start), "end": _iso(interval.end)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}


def _custom(timetable: Any, document: dict[str, Json]) -> tuple[Timetable | None, dict[str, Json]]:
    """The author's timetable and its document, also inside another schedule; None when there is none."""
    while document.get("kind") == "asset_or_time":
        timetable, document = timetable.timetable, document["timetable"]
    return (timetable, document) if document.get("kind") == "custom" else (None, document)


def _slot(info: Any) -> dict[str, Json]:
    slot = {"run_after": _iso(info.run_after)}
    if info.data_interval is not None:
        slot |= {"start": _iso(info.data_interval.start), "end": _iso(info.data_interval.end)}
    logical_date = getattr(info, "logical_date", None)
    if logical_date is not None:
        slot["logical_date"] = _iso(logical_date)
    return slot


def _restriction(document: Mapping[str, Json]) -> TimeRestriction:
    start, end = document.get("start_date"), document.get("end_date")
    return TimeRestriction(
        earliest=_instant(start) if start else None,
        latest=_instant(end) if end else None,
        catchup=bool(document.get("catchup", False)),
    )


def _interval(document: Mapping[str, Json] | None) -> DataInterval | None:
    return None if document is None else DataInterval(_instant(document["start"]), _instant(document["end"]))


def _instant(text: str) -> Any:
    """An aware pendulum DateTime, which is what authors' classes expect."""
    return timezone.coerce_datetime(dt.datetime.fromisoformat(text))


def _iso(value: Any) -> str:
    if value.tzinfo is None:
        raise ValueError(f"{value} has no time zone: a timetable must give aware datetimes.")
    return value.isoformat()
