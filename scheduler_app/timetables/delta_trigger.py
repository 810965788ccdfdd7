"""``delta_trigger``: a timedelta in a DAG file."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.timetables.delta import delta_from_doc
from scheduler_app.timetables.trigger import TriggerTimetable


class DeltaTriggerTimetable(TriggerTimetable):
    """Counts from the last fire; without one, from the start date or (no catch-up) from now."""

    def __init__(self, doc: dict[str, Any]) -> None:
        self.delta = delta_from_doc(doc["delta"], positive=True)
        self.interval = delta_from_doc(doc.get("interval", 0))
        self.summary = str(self.delta)
        self.description = f"Every {self.delta} (hours:minutes:seconds), counted from the last run"

    def after(self, at: datetime) -> datetime:
        return at + self.delta

    def at_or_after(self, at: datetime) -> datetime:
        return at

    def at_or_before(self, at: datetime) -> datetime:
        return at

    def first_without_start(self, now: datetime) -> datetime:
        return now
