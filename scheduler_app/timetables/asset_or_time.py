"""``asset_or_time``: another timetable's slots, and asset events on top."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable


class AssetOrTimeTimetable(Timetable):
    def __init__(self, doc: dict[str, Any]) -> None:
        from scheduler_app.timetables.kinds import KINDS  # the inner timetable may be of any kind in that table

        inner = doc["timetable"]
        if inner.get("kind") not in KINDS:
            raise ValueError(f"Unknown timetable kind {inner.get('kind')!r} beside assets.")
        self.time = KINDS[inner["kind"]](inner)
        self.asset_condition = doc["condition"]
        self.summary = f"Asset or {self.time.summary}"
        self.description = f"Started by updates of assets, or: {self.time.description}"
        self.periodic = self.time.periodic
        self.active_runs_limit = self.time.active_runs_limit

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        return self.time.next_info(last, restriction)

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return self.time.infer_manual(run_after)

    def interval_of(self, logical_date: datetime) -> DataInterval | None:
        return self.time.interval_of(logical_date)
