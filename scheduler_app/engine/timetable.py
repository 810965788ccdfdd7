"""What a timetable answers. Every datetime here is aware; answers are in UTC. The kinds are in ``timetables/``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self


class DataInterval(NamedTuple):
    """The stretch of time whose data a run works on; ``start == end`` for a run that is about an instant."""

    start: datetime
    end: datetime

    @classmethod
    def exact(cls, at: datetime) -> Self:
        return cls(at, at)


class Restriction(NamedTuple):
    """What bounds the next run: the DAG's dates, its catch-up, and the present."""

    earliest: datetime | None
    latest: datetime | None
    catchup: bool
    now: datetime


class RunInfo(NamedTuple):
    """One slot of a schedule: a run that may start at ``run_after`` and not before."""

    logical_date: datetime | None
    interval: DataInterval | None
    run_after: datetime

    @classmethod
    def exact(cls, at: datetime) -> Self:
        return cls(at, DataInterval.exact(at), at)

    @classmethod
    def over(cls, start: datetime, end: datetime) -> Self:
        return cls(start, DataInterval(start, end), end)


class Timetable(ABC):
    """A schedule. Equal documents give timetables that answer alike."""

    #: as the API shows it: the cron expression, "@once", "7:00:00"
    summary: str
    #: one sentence for people
    description: str
    #: false: its next run is not a matter of time alone, or there is only one
    periodic: bool = True
    #: false: no run is ever created from it by time
    can_be_scheduled: bool = True
    #: asset condition that starts a run, None where time alone does
    asset_condition: Any = None
    #: at most so many runs at a time, whatever the DAG says
    active_runs_limit: int | None = None

    @abstractmethod
    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        """The slot after the interval of the last scheduled run (None: there was none), or None when there is no more.

        With catch-up: the first slot not created yet. Without: the latest slot that is due, else the next one.
        """

    @abstractmethod
    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        """The interval of a run started by hand for that instant; None = only the child with its class can say."""

    def partition_key(self, run_after: datetime) -> str | None:
        """The partition that the scheduled run of that instant makes; None = its runs are no partitions."""
        return None

    def interval_of(self, logical_date: datetime) -> DataInterval | None:
        """The interval that the schedule itself gives the run with this logical date, None when it has no such run."""
        return None


def utc(at: datetime) -> datetime:
    """The same instant in UTC. ValueError for a naive one."""
    if at.tzinfo is None:
        raise ValueError(f"{at.isoformat()} has no UTC offset: give an aware datetime.")
    return at.astimezone(UTC)
