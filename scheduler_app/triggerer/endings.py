"""Tasks that their trigger ends by itself: the same verdict, XComs and callbacks as after an attempt."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.engine import states
from scheduler_app.models import Callback, transitions
from scheduler_app.models.effect import Try, of_task
from scheduler_app.runner import buffers
from scheduler_app.runner.buffers import Buffer, Owner
from scheduler_app.runner.claims import Claim
from scheduler_app.runner.decide import decide

_WHY = "Its trigger ended it."


def end(claim: Claim, ti_id: int, fence: int, ending: dict[str, Any], now: datetime) -> list[int]:
    """Ends a deferred task as `ending` (``state``, ``xcoms``) says, in the caller's transaction; its id if it moved."""
    error = None if ending["state"] == states.SUCCESS else {"type": "", "message": _WHY}
    outcome = {"state": ending["state"], "retry": False, "error": error}
    decision = decide(claim, outcome, "", states.DEFERRED, now)
    columns = {name: value for name, value in decision.columns.items() if value is not None}
    moved = transitions.tasks(decision.verb, [ti_id], now, fences=[fence], **columns)
    if moved:
        owner = Owner(ti_id, claim.run_pk, claim.dag_id, claim.task_id, claim.map_index)
        buffers.write([(owner, Buffer(xcoms=ending.get("xcoms") or {}))], now)
        if claim.task is not None and decision.callback is not None:
            of = Try(ti_id, fence, claim.dag_id, claim.run_pk, claim.try_number)
            Callback.objects.want(of_task(claim.task, decision.callback, of, {"error": error, "reason": _WHY}), now)
    return moved
