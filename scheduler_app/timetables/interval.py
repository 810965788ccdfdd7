"""What the data-interval timetables share: time is cut into intervals, a run is due when its interval is over."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable, utc


class IntervalTimetable(Timetable):
    """The logical date is the start of the interval, ``run_after`` its end."""

    @abstractmethod
    def boundary_after(self, at: datetime) -> datetime:
        """The end of an interval that starts at an instant."""

    @abstractmethod
    def boundary_from(self, at: datetime) -> datetime:
        """The first instant from this one on at which an interval may start."""

    @abstractmethod
    def latest_start(self, now: datetime) -> datetime:
        """The start of the last interval that is over."""

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        start = self._start(last, restriction)
        if start is None or (restriction.latest is not None and start > restriction.latest):
            return None
        return RunInfo.over(utc(start), utc(self.boundary_after(start)))

    def _start(self, last: DataInterval | None, restriction: Restriction) -> datetime | None:
        """Never before the end of the last interval. After a change of the schedule that end may be no boundary of the
        new one: then one shorter transition interval leads from it to the next boundary, without overlap or hole."""
        starts = []
        if restriction.earliest is not None:
            starts.append(self.boundary_from(restriction.earliest))
        if not restriction.catchup:
            starts.append(self.latest_start(restriction.now))
        if last is not None:
            starts.append(last.end)
        return max(starts, default=None)
