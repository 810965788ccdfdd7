"""Asks the executors which processes are gone without a report; the rows say what that means (design decision 7)."""

from __future__ import annotations

from scheduler_app.scheduler.lost import Gone, end_attempts
from scheduler_app.scheduler.tick import Tick


def run(tick: Tick) -> int:
    return end_attempts(
        [Gone(lost.ti_id, lost.fence, lost.reason) for executor in tick.executors.values() for lost in executor.lost()],
        tick.now,
    )
