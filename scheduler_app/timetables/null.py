"""``null``: no schedule; runs are started by hand, by the API or by other DAGs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable


class NullTimetable(Timetable):
    summary = "None"
    description = "No schedule: started by people, the API or other DAGs"
    periodic = False
    can_be_scheduled = False

    def __init__(self, doc: dict[str, Any]) -> None:
        self.doc = doc

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        return None

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return DataInterval.exact(run_after)
