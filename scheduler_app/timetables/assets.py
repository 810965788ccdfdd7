"""``asset``: started by asset events; the condition is judged by ``engine/assets.py``."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable


class AssetTimetable(Timetable):
    summary = "Asset"
    description = "Started by updates of assets"
    periodic = False

    def __init__(self, doc: dict[str, Any]) -> None:
        self.asset_condition = doc["condition"]

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        return None

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return DataInterval.exact(run_after)
