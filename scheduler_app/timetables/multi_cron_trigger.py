"""``multi_cron_trigger``: whenever one of several cron expressions fires; at one instant once."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable
from scheduler_app.timetables.cron_trigger import CronTriggerTimetable


class MultiCronTriggerTimetable(Timetable):
    def __init__(self, doc: dict[str, Any]) -> None:
        expressions = doc["expressions"]
        if not expressions:
            raise ValueError("A timetable of several cron expressions needs at least one.")
        self.parts = [CronTriggerTimetable({**doc, "expression": expression}) for expression in expressions]
        self.summary = ", ".join(part.summary for part in self.parts)
        self.description = ", ".join(part.description for part in self.parts)

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        infos = [info for part in self.parts if (info := part.next_info(last, restriction)) is not None]
        due = [info for info in infos if info.run_after <= restriction.now]
        if due and not restriction.catchup:
            return max(due, key=_when)
        return min(infos, key=_when, default=None)

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return self.parts[0].infer_manual(run_after)


def _when(info: RunInfo) -> datetime:
    return info.run_after
