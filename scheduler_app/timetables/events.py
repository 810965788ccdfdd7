"""``events``: a list of instants."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable, utc


class EventsTimetable(Timetable):
    def __init__(self, doc: dict[str, Any]) -> None:
        self.dates = sorted({utc(datetime.fromisoformat(text)) for text in doc["event_dates"]})
        self.restrict_to_events = bool(doc.get("restrict_to_events", False))
        given = doc.get("description")
        self.summary = given or f"{len(self.dates)} events"
        self.description = given or self._between()

    def _between(self) -> str:
        if not self.dates:
            return "No events"
        return f"{len(self.dates)} events from {self.dates[0].isoformat()} to {self.dates[-1].isoformat()}"

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        """Without catch-up an event that is over is not made up for, even as the latest one."""
        earliest = restriction.earliest
        if not restriction.catchup and (earliest is None or earliest < restriction.now):
            earliest = restriction.now
        place = bisect_left(self.dates, earliest) if earliest is not None else 0
        if last is not None:
            place = max(place, bisect_right(self.dates, last.end))
        if place == len(self.dates) or (restriction.latest is not None and self.dates[place] > restriction.latest):
            return None
        return RunInfo.exact(self.dates[place])

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        if not self.restrict_to_events or not self.dates:
            return DataInterval.exact(run_after)
        return DataInterval.exact(self.dates[max(bisect_right(self.dates, run_after) - 1, 0)])
