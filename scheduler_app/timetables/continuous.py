"""``continuous``: the next run begins when the last one has ended; one at a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable, utc

_TICK = timedelta(microseconds=1)


class ContinuousTimetable(Timetable):
    summary = "@continuous"
    description = "All the time: the next run begins when the last one has ended"
    periodic = False
    active_runs_limit = 1

    def __init__(self, doc: dict[str, Any]) -> None:
        self.doc = doc

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        """From the end of the last run's interval to now. A start date that was moved into the future is waited for;
        an interval is never empty after the first, so that no two runs have one logical date."""
        starts = [at for at in (restriction.earliest, last.end if last is not None else None) if at is not None]
        start = max(starts, default=restriction.now)
        end = max(start if last is None else start + _TICK, restriction.now)
        if restriction.latest is not None and end > restriction.latest:
            return None
        return RunInfo.over(utc(start), utc(end))

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return DataInterval.exact(run_after)
