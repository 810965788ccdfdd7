"""``once``: one scheduled run, ever, at the start date (or at once without one), catch-up or not."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable, utc


class OnceTimetable(Timetable):
    summary = "@once"
    description = "One run, as soon as its start date has come"
    periodic = False

    def __init__(self, doc: dict[str, Any]) -> None:
        self.doc = doc

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        if last is not None:
            return None
        at = utc(restriction.earliest or restriction.now)
        return None if restriction.latest is not None and at > restriction.latest else RunInfo.exact(at)

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return DataInterval.exact(run_after)
