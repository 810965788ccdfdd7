"""``delta_interval``: intervals of one length."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval
from scheduler_app.timetables.delta import delta_from_doc, seconds
from scheduler_app.timetables.interval import IntervalTimetable


class DeltaIntervalTimetable(IntervalTimetable):
    def __init__(self, doc: dict[str, Any]) -> None:
        self.delta = delta_from_doc(doc["delta"], positive=True)
        self.summary = str(self.delta)
        self.description = f"Intervals of {self.delta} (hours:minutes:seconds), each run at its end"

    def boundary_after(self, at: datetime) -> datetime:
        return at + self.delta

    def boundary_from(self, at: datetime) -> datetime:
        return at

    def latest_start(self, now: datetime) -> datetime:
        """Without catch-up the last interval ends at a multiple of its length counted from 1970, as Airflow has it."""
        stamp = now.timestamp()
        return datetime.fromtimestamp(stamp - stamp % max(seconds(self.delta), 1), UTC) - self.delta

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return DataInterval(run_after - self.delta, run_after)
