"""Which scheduled run comes next, and what a run started by hand is about.

The next slot is a function of the schedule, the last slot that was *created* and the misfire policy; it is never stored
as a truth, and never at or before that last slot. Manual, backfill and asset runs have no part in it.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable, utc

#: What becomes of slots that fell due while nobody created them (a pause, an outage): ``skip`` all of them, run the
#: ``latest``, or ``all`` (with a limit: the most recent ones). None follows the DAG: ``all`` with catch-up, else
#: ``latest``, as Airflow does.
Misfire = Literal["skip", "latest", "all"]
MISFIRE_GRACE_SECONDS: Final = 60.0
#: How far a schedule is walked for one answer; one that has more slots to offer is answered bit by bit.
_MOST_STEPS: Final = 10_000


class ScheduleFacts(NamedTuple):
    """What the next run depends on, beside the timetable."""

    #: interval of the last scheduled run that was created (whatever became of it), and when it was due
    last: DataInterval | None
    last_run_after: datetime | None
    earliest: datetime | None
    latest: datetime | None
    catchup: bool
    now: datetime
    misfire: Misfire | None = None
    #: with ``all``: at most so many missed slots; None = every one
    misfire_limit: int | None = None
    #: a slot that is late by no more is not missed: somebody was just about to create it
    misfire_grace_seconds: float = MISFIRE_GRACE_SECONDS
    #: each run comes up to so many seconds after its slot; the key (the DAG's id) and the slot say how many
    jitter_seconds: float = 0.0
    jitter_key: str = ""


class RunPlan(NamedTuple):
    """The next run. It may be created once ``now >= due``; ``slot_key`` is unique in its DAG's schedule."""

    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    #: the slot itself
    run_after: datetime
    slot_key: str
    #: the jitter of this slot
    delay_seconds: float = 0.0

    @property
    def due(self) -> datetime:
        """When the run may start."""
        return self.run_after + timedelta(seconds=self.delay_seconds)


def next_plan(timetable: Timetable, facts: ScheduleFacts) -> RunPlan | None:
    """The slot after the last created one, due or still to come; None = the schedule has no more.

    An answer with a ``run_after`` in the past is due now. ValueError: the timetable cannot say (an expression that
    never fires again); it concerns this DAG alone.
    """
    misfire = facts.misfire or ("all" if facts.catchup else "latest")
    if misfire == "all":
        info = _after(timetable, facts, True) if facts.misfire_limit is None else _oldest_missed(timetable, facts)
    else:
        info = _latest(timetable, facts)
        if misfire == "skip" and info is not None and _planned(timetable, facts, info).due < _grace_ago(facts):
            passed = facts._replace(last=_interval(info), last_run_after=info.run_after)
            info = _after(timetable, passed, True)
    return None if info is None else _planned(timetable, facts, info)


def preview(timetable: Timetable, facts: ScheduleFacts, count: int) -> list[RunPlan]:
    """The next ``count`` runs, by the same function, each as if it were created as soon as it is due."""
    plans: list[RunPlan] = []
    while len(plans) < count:
        plan = next_plan(timetable, facts)
        if plan is None:
            break
        plans.append(plan)
        last = DataInterval.exact(plan.run_after)
        if plan.data_interval_start is not None and plan.data_interval_end is not None:
            last = DataInterval(plan.data_interval_start, plan.data_interval_end)
        facts = facts._replace(last=last, last_run_after=plan.run_after, now=max(facts.now, plan.run_after))
    return plans


def slots_between(timetable: Timetable, start: datetime, end: datetime) -> Iterator[RunPlan]:
    """Every slot whose logical date lies in [start, end], oldest first: what a backfill of that range is about."""
    restriction = Restriction(earliest=utc(start), latest=utc(end), catchup=True, now=utc(end))
    info = timetable.next_info(None, restriction)
    while info is not None and (info.logical_date or info.run_after) <= end:
        yield plan_of(info)
        following = timetable.next_info(_interval(info), restriction)
        if following is not None and following.run_after <= info.run_after:
            return
        info = following


def manual_interval(timetable: Timetable, *, logical_date: datetime | None, run_after: datetime) -> DataInterval | None:
    """The data interval of a run started by hand; None = only the child that has the timetable's class can say.

    A logical date that the schedule has a run for gives the interval of that run; any other the last interval that was
    complete then. Without a logical date a run has no interval: this is not called for it.
    """
    if logical_date is None:
        return timetable.infer_manual(utc(run_after))
    return timetable.interval_of(utc(logical_date)) or timetable.infer_manual(utc(logical_date))


def run_id(run_type: str, *, run_after: datetime, logical_date: datetime | None, token: str = "") -> str:
    """``scheduled__2024-01-03T06:00:00+00:00``: type and the instant at which the run is due.

    For a data-interval timetable that is the end of the interval. Without a logical date two runs may be due at once:
    ``token`` (some random letters) keeps their ids apart.
    """
    text = f"{run_type}__{utc(run_after).isoformat()}"
    return f"{text}_{token}" if logical_date is None and token else text


def plan_of(info: RunInfo) -> RunPlan:
    """A slot as the row that it becomes."""
    start, end = info.interval or (None, None)
    return RunPlan(info.logical_date, start, end, info.run_after, info.run_after.isoformat())


def _planned(timetable: Timetable, facts: ScheduleFacts, info: RunInfo) -> RunPlan:
    """The slot with its jitter: whole seconds, the same whoever asks, and never as far as the slot after it."""
    plan = plan_of(info)
    most = facts.jitter_seconds
    if most <= 0:
        return plan
    following = timetable.next_info(_interval(info), Restriction(facts.earliest, None, True, facts.now))
    if following is not None and following.run_after > info.run_after:
        most = min(most, (following.run_after - info.run_after).total_seconds())
    digest = hashlib.sha1(f"{facts.jitter_key}/{plan.slot_key}".encode(), usedforsecurity=False).hexdigest()
    return plan._replace(delay_seconds=float(int(digest, 16) % max(1, int(most))))


def _after(timetable: Timetable, facts: ScheduleFacts, catchup: bool) -> RunInfo | None:
    """The timetable's answer, moved on until it lies after the last created slot.

    An answer that does not is what a schedule gives right after it was changed.
    """
    restriction = Restriction(facts.earliest, facts.latest, catchup, facts.now)
    last = facts.last
    for _ in range(_MOST_STEPS):
        info = timetable.next_info(last, restriction)
        if info is None or facts.last_run_after is None or info.run_after > facts.last_run_after:
            return info
        interval = _interval(info)
        if last is not None and interval.end <= last.end:
            return None
        last = interval
    return None


def _latest(timetable: Timetable, facts: ScheduleFacts) -> RunInfo | None:
    """The timetable's answer without catch-up. One that never looks back (events, an author's own) would lose the slot
    that is just due when it is asked a moment late: so it is asked once more as of a moment ago."""
    info = _after(timetable, facts, False)
    if info is None or info.run_after > facts.now:
        just_due = _after(timetable, facts._replace(now=_grace_ago(facts)), False)
        if just_due is not None and just_due.run_after <= facts.now:
            return just_due
    return info


def _oldest_missed(timetable: Timetable, facts: ScheduleFacts) -> RunInfo | None:
    """The first of the most recent ``misfire_limit`` slots that are due, or the next to come when none is."""
    limit = max(facts.misfire_limit or 0, 1)
    first = _after(timetable, facts, True)
    if first is None or first.run_after > facts.now:
        return first
    recent: deque[RunInfo] = deque(maxlen=limit)
    span = timedelta(minutes=max(limit, 1))
    # slots are counted in a window that grows until it holds enough: the cost follows the limit, not the outage
    while True:
        since = facts.now - span
        whole = since <= first.run_after
        recent.clear()
        for info in _due_since(timetable, facts, None if whole else since, first):
            recent.append(info)
        if whole or len(recent) == limit:
            return recent[0] if recent else first
        span *= 4


def _due_since(timetable: Timetable, facts: ScheduleFacts, since: datetime | None, first: RunInfo) -> Iterator[RunInfo]:
    earliest = facts.earliest if since is None else max(since, facts.earliest or since)
    restriction = Restriction(earliest, facts.latest, True, facts.now)
    info = first if since is None else timetable.next_info(None, restriction)
    while info is not None and info.run_after <= facts.now:
        yield info
        info = timetable.next_info(_interval(info), restriction)


def _interval(info: RunInfo) -> DataInterval:
    return info.interval or DataInterval.exact(info.run_after)


def _grace_ago(facts: ScheduleFacts) -> datetime:
    return facts.now - timedelta(seconds=facts.misfire_grace_seconds)
