"""``custom``: a class of the DAG's author. Our processes never import it: the child has planned its next slots."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable, utc


class CustomTimetable(Timetable):
    def __init__(self, doc: dict[str, Any]) -> None:
        self.class_name = doc.get("class", "")
        self.summary = doc.get("summary") or self.class_name.rpartition(".")[2]
        self.description = doc.get("description") or ""
        self.periodic = doc.get("periodic", True)
        self.can_be_scheduled = doc.get("can_be_scheduled", True)
        self.planned = [slot(one) for one in doc.get("planned", ())]

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        """The next planned slot after the last created one, or None: no more, or the child has to plan again.

        Without catch-up planned slots that were missed are passed over, as everywhere: the latest that is due, else the
        next one. The author's class saw the restriction when it planned; only the end date is checked again here.
        """
        found: RunInfo | None = None
        for one in self.planned:
            if last is not None and (one.interval or DataInterval.exact(one.run_after)).end <= last.end:
                continue
            if restriction.latest is not None and (one.logical_date or one.run_after) > restriction.latest:
                break
            if found is not None and (restriction.catchup or one.run_after > restriction.now):
                break
            found = one
        return found

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return None


def slot(doc: dict[str, Any]) -> RunInfo:
    """A slot as the child wrote it down. ValueError for one that cannot be."""
    run_after = utc(datetime.fromisoformat(doc["run_after"]))
    start, end = doc.get("start"), doc.get("end")
    interval = None
    if start is not None and end is not None:
        interval = DataInterval(utc(datetime.fromisoformat(start)), utc(datetime.fromisoformat(end)))
    logical = doc.get("logical_date")
    if logical is not None:
        return RunInfo(utc(datetime.fromisoformat(logical)), interval, run_after)
    return RunInfo(interval.start if interval is not None else None, interval, run_after)
