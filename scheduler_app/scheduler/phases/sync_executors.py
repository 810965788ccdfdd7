"""Asks the executors which processes are gone without a report; the rows say what that means (design decision 7).

An executor tells each loss once, so what it told is kept until the transaction that judges it has committed (S-16).
Judging twice changes nothing: the fence and the state of the row are asked again. One that cannot be judged is dropped
when it has failed alone: its row's heartbeat will tell.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from scheduler_app.executors.base import Executor, Lost
from scheduler_app.models import db
from scheduler_app.scheduler.lost import Gone, end_attempts
from scheduler_app.scheduler.tick import Tick

log = logging.getLogger("scheduler_app.scheduler")

_untold: WeakKeyDictionary[Executor, list[Lost]] = WeakKeyDictionary()


def run(tick: Tick) -> int:
    for executor in tick.executors.values():
        _untold.setdefault(executor, []).extend(executor.lost())
    told = [lost for executor in tick.executors.values() for lost in _untold[executor]]
    if not told:
        return 0
    moved = _judge(told, tick)
    for executor in tick.executors.values():
        _untold[executor].clear()
    return moved


def _judge(told: Sequence[Lost], tick: Tick) -> int:
    try:
        with db.atomic():
            return end_attempts([Gone(lost.ti_id, lost.fence, lost.reason) for lost in told], tick.now)
    except Exception as error:
        if db.is_transient(error):
            raise
        if len(told) > 1:
            return sum(_judge([lost], tick) for lost in told)
        log.exception("The loss of task instance %s could not be judged", told[0].ti_id)
        return 0
