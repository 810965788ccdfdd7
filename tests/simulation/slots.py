"""Slots of schedules: when one may get its run, and which must have theirs at the end (I6)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from scheduler_app.engine.run_plans import MISFIRE_GRACE_SECONDS, slots_between
from scheduler_app.models import Audit, DagModel
from scheduler_app.timetables import from_doc

from .cast import DAILY, OFTEN, Part

if TYPE_CHECKING:
    from .world import World


def wrong(part: Part, slot_key: str, due: datetime, created: datetime) -> str:
    """What is wrong with the run of a slot that was due then and got it then; empty: nothing."""
    slot = datetime.fromisoformat(slot_key)
    jitter = part.fields.get("schedule_jitter", 0.0)
    period = timedelta(days=1) if part.fields["timetable"] == DAILY else timedelta(minutes=5)
    if not timedelta(0) <= due - slot < max(timedelta(seconds=min(jitter, period.total_seconds())), _MOMENT):
        return f"its run comes {due - slot} after it, with a jitter of {jitter} s"
    if created < due:
        return f"it is due at {due}"
    if part.fields.get("catchup"):
        return ""
    if part.fields.get("misfire_policy") == "skip" and created - due > timedelta(seconds=MISFIRE_GRACE_SECONDS):
        return "it was missed, and missed slots are skipped"
    if slot + period + timedelta(seconds=jitter) <= created:
        return "a later one is due already, and only the latest is made"
    return ""


_MOMENT = timedelta(microseconds=1)


def check(world: World) -> None:
    """A schedule that catches up has a run or a recorded skip for each slot since its start, and for no other; one that
    does not has runs for slots alone."""
    for part in world.parts:
        if part.fields.get("timetable") not in (DAILY, OFTEN):
            continue
        dag = DagModel.objects.get(pk=part.dag_id)
        timetable = from_doc(dag.timetable)
        assert dag.start_date is not None
        assert dag.end_date is not None
        wanted = {plan.slot_key for plan in slots_between(timetable, dag.start_date, dag.end_date)}
        skipped = Audit.objects.filter(dag_id=part.dag_id, event="skip_scheduled_run").values_list("extra", flat=True)
        recorded = [extra["slot"] for extra in skipped]
        got = world.ledger.slots[part.dag_id]
        if len(recorded) != len(set(recorded)) or got & set(recorded):
            world.fail("I6", f"slots of {part.dag_id} were dealt with twice: {sorted(recorded)}, runs {sorted(got)}")
        dealt = got | set(recorded)
        missing = sorted(wanted - dealt) if part.fields.get("catchup") else []
        if missing or dealt - wanted:
            world.fail("I6", f"slots of {part.dag_id}: missing {missing}, too many {sorted(dealt - wanted)}")
