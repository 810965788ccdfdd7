"""Slots of backfills, as the timetable class of their DAG's author listed them in the child."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from scheduler_app.actions.backfills import MOST_SLOTS, TOO_MANY
from scheduler_app.engine.run_plans import RunPlan, plan_of
from scheduler_app.models import Backfill, BackfillSlot
from scheduler_app.runner.decide import storable
from scheduler_app.timetables.custom import slot

Json = Any


def settle(answers: Mapping[str, Json], now: datetime) -> int:
    """Gives the waiting backfills their slots; one whose class failed ends with that reason. How many were settled."""
    settled = 0
    for key, answer in sorted(answers.items(), key=lambda item: int(item[0])):
        row = Backfill.objects.waiting_for_slots().filter(pk=int(key)).select_for_update(no_key=True).first()
        if row is None:
            continue
        error, plans = _read(answer, row, now)
        if error is not None:
            row.error, row.completed_at = error, now
        else:
            BackfillSlot.objects.add(row, plans)
        row.slots_pending, row.updated_at = False, now
        row.save(update_fields=["slots_pending", "error", "completed_at", "updated_at"])
        settled += 1
    return settled


def _read(answer: Json, row: Backfill, now: datetime) -> tuple[str | None, Sequence[RunPlan]]:
    """The error, or the slots that are due, in the order in which they are to run."""
    if isinstance(answer, dict):
        return f"The DAG's timetable cannot list its slots: {storable(answer['error'])}", []
    try:
        plans = [plan_of(slot(one)) for one in answer]
    except ValueError as error:
        return f"The DAG's timetable gave a slot that cannot be: {error}", []
    if len(plans) > MOST_SLOTS:
        return TOO_MANY, []
    due = [plan for plan in plans if plan.run_after <= now]
    return None, due[::-1] if row.reverse else due
