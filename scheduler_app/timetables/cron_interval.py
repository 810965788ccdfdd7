"""``cron_interval``: intervals between the fires of a cron expression."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval
from scheduler_app.timetables.cron import CronCalendar
from scheduler_app.timetables.cron_words import describe
from scheduler_app.timetables.interval import IntervalTimetable


class CronIntervalTimetable(IntervalTimetable):
    def __init__(self, doc: dict[str, Any]) -> None:
        self.calendar = CronCalendar(
            doc["expression"], doc.get("timezone", "UTC"), gap=doc.get("gap"), overlap=doc.get("overlap")
        )
        self.summary = self.calendar.expression
        self.description = describe(self.calendar.expression)

    def boundary_after(self, at: datetime) -> datetime:
        return self.calendar.next(at)

    def boundary_from(self, at: datetime) -> datetime:
        return self.calendar.at_or_after(at)

    def latest_start(self, now: datetime) -> datetime:
        return self.calendar.prev(self.calendar.at_or_before(now))

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        end = self.calendar.at_or_before(run_after)
        return DataInterval(self.calendar.prev(end), end)

    def interval_of(self, logical_date: datetime) -> DataInterval | None:
        if self.calendar.at_or_after(logical_date) != logical_date:
            return None
        return DataInterval(logical_date, self.calendar.next(logical_date))
