"""What all trigger timetables share: a run is due at its fire time, its data interval is a matter of taste."""

from __future__ import annotations

from abc import abstractmethod
from datetime import datetime

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable, utc
from scheduler_app.timetables.delta import Delta


class TriggerTimetable(Timetable):
    """Fires at instants; the data interval ends at the fire and is ``interval`` long (0 by default)."""

    interval: Delta

    @abstractmethod
    def after(self, at: datetime) -> datetime:
        """The fire that follows one at an instant."""

    @abstractmethod
    def at_or_after(self, at: datetime) -> datetime:
        """The first fire from an instant on."""

    @abstractmethod
    def at_or_before(self, at: datetime) -> datetime:
        """The last fire up to an instant."""

    @abstractmethod
    def first_without_start(self, now: datetime) -> datetime:
        """The first fire of a DAG that has neither runs nor a start date."""

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        if restriction.catchup:
            fire = self._next_slot(last, restriction)
        else:
            fires = [self.at_or_before(restriction.now), self._next_slot(last, restriction)]
            if restriction.earliest is not None:
                fires.append(self.at_or_after(restriction.earliest))
            fire = max(fires)
        if restriction.latest is not None and fire > restriction.latest:
            return None
        return RunInfo.over(utc(fire - self.interval), utc(fire))

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return DataInterval(utc(run_after - self.interval), utc(run_after))

    def _next_slot(self, last: DataInterval | None, restriction: Restriction) -> datetime:
        if last is not None:
            return self.after(last.end)
        if restriction.earliest is not None:
            return self.at_or_after(restriction.earliest)
        return self.first_without_start(restriction.now)
