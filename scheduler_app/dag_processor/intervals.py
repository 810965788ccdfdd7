"""Data intervals of manual runs, as the timetable class of their DAG's author said them in the child."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler_app.models import DagRun, transitions

from .schedule import instant

Json = Any


def settle(answers: Mapping[str, Json], now: datetime) -> int:
    """Gives the waiting runs their intervals; one whose class failed ends with that reason. How many were settled."""
    settled = 0
    for key, answer in sorted(answers.items(), key=lambda item: int(item[0])):
        error, start, end = _read(answer)
        if error is not None:
            reason = f"The DAG's timetable cannot say the data interval of this run: {error}"
            settled += len(transitions.runs("fail", [int(key)], now, state_reason=reason))
            continue
        waiting = DagRun.objects.filter(pk=int(key), state="queued", interval_pending=True)
        settled += waiting.update(data_interval_start=start, data_interval_end=end, interval_pending=False)
    return settled


def _read(answer: Json) -> tuple[str | None, datetime | None, datetime | None]:
    if "error" in answer:
        return answer["error"], None, None
    start, end = instant(answer["start"]), instant(answer["end"])
    if start is not None and end is not None and end < start:
        return f"it gave an interval that ends ({end.isoformat()}) before it starts ({start.isoformat()})", None, None
    return None, start, end
