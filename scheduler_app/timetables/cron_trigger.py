"""``cron_trigger``: a cron string in a DAG file."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from scheduler_app.timetables.cron import CronCalendar
from scheduler_app.timetables.cron_words import describe
from scheduler_app.timetables.delta import Delta, delta_from_doc
from scheduler_app.timetables.trigger import TriggerTimetable


class CronTriggerTimetable(TriggerTimetable):
    def __init__(self, doc: dict[str, Any]) -> None:
        self.calendar = CronCalendar(
            doc["expression"], doc.get("timezone", "UTC"), gap=doc.get("gap"), overlap=doc.get("overlap")
        )
        self.interval = delta_from_doc(doc.get("interval", 0))
        given = doc.get("run_immediately", False)
        #: true: run the last fire first of all; a duration: if it is not older than that
        self.run_immediately: Delta | bool = given if isinstance(given, bool) else delta_from_doc(given)
        self.partition = doc.get("partition")
        self.summary = self.calendar.expression
        self.description = describe(self.calendar.expression)

    def after(self, at: datetime) -> datetime:
        return self.calendar.next(at)

    def at_or_after(self, at: datetime) -> datetime:
        return self.calendar.at_or_after(at)

    def at_or_before(self, at: datetime) -> datetime:
        return self.calendar.at_or_before(at)

    def partition_key(self, run_after: datetime) -> str | None:
        if self.partition is None:
            return None
        offset = self.partition.get("offset") or 0
        at = run_after
        if isinstance(offset, int):
            for _ in range(abs(offset)):
                at = self.after(at) if offset > 0 else self.at_or_before(at - timedelta(microseconds=1))
        else:
            at = at + delta_from_doc(offset["delta"])
        return at.astimezone(self.calendar.tz).strftime(self.partition["format"])

    def first_without_start(self, now: datetime) -> datetime:
        """The last fire if it may still run, else the next one.

        With ``run_immediately`` false that is while less than a tenth of the gap to the next fire, or five minutes, has
        passed.
        """
        past, coming = self.at_or_before(now), self.at_or_after(now)
        if self.run_immediately is True:
            return past
        if self.run_immediately is False:
            patience: Delta = max((coming - past) / 10, timedelta(minutes=5))
        else:
            patience = self.run_immediately
        return past if now <= past + patience else coming
