"""Asks the executors which processes are gone without a report; the rows say what that means (design decision 7).

An executor tells each loss once, so what it told is kept until the transaction that judges it has committed (S-16).
Judging twice changes nothing: the fence and the state of the row are asked again.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

from scheduler_app.executors.base import Executor, Lost
from scheduler_app.models import db
from scheduler_app.scheduler.lost import Gone, end_attempts
from scheduler_app.scheduler.tick import Tick

_untold: WeakKeyDictionary[Executor, list[Lost]] = WeakKeyDictionary()


def run(tick: Tick) -> int:
    for executor in tick.executors.values():
        _untold.setdefault(executor, []).extend(executor.lost())
    told = [lost for executor in tick.executors.values() for lost in _untold[executor]]
    if not told:
        return 0
    with db.atomic():
        moved = end_attempts([Gone(lost.ti_id, lost.fence, lost.reason) for lost in told], tick.now)
    for executor in tick.executors.values():
        _untold[executor].clear()
    return moved
