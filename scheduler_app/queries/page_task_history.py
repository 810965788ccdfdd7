"""One task over the runs of its DAG: how it ended, how long it took, how often it was tried again, what went wrong."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from statistics import median, quantiles
from typing import Final

from scheduler_app.engine import states
from scheduler_app.models import TaskInstance, TaskInstanceHistory, db

#: Failures that are named.
ERRORS: Final = 10
_FAILED: Final = (states.FAILED, states.UP_FOR_RETRY)


@dataclass(slots=True)
class Past:
    """The task in one run, all its map indexes together."""

    run_pk: int
    run_id: str
    run_after: datetime
    #: state or "none" → instances
    tally: Counter[str] = field(default_factory=Counter)
    seconds: float | None = None
    #: instances that were tried more than once
    retried: int = 0


@dataclass(frozen=True, slots=True)
class Failure:
    run_id: str
    map_index: int
    try_number: int
    ended: datetime
    reason: str | None


@dataclass(frozen=True, slots=True)
class Habits:
    """What its instances in these runs did, as shares from 0 to 1 and seconds; None where nothing can be said."""

    ended: int
    success: float | None
    retried: float | None
    usual: float | None
    slow: float | None


def past(dag_id: str, task_id: str, count: int, now: datetime) -> list[Past]:
    """The newest ``count`` runs of the DAG that have the task, the oldest first. One query."""
    records = db.fetch(
        """
        SELECT r.id, r.run_id, r.run_after, coalesce(t.state, 'none'), count(*),
               max(extract(epoch FROM
                   CASE WHEN t.state IN ('running', 'restarting') THEN %s ELSE t.end_date END - t.start_date))::float,
               count(*) FILTER (WHERE t.try_number > 1)
        FROM (
            SELECT id, run_id, run_after FROM scheduler_dag_run
            WHERE dag_id = %s ORDER BY run_after DESC, id DESC LIMIT %s
        ) r JOIN scheduler_task_instance t ON t.dag_run_id = r.id AND t.task_id = %s
        GROUP BY r.id, r.run_id, r.run_after, t.state ORDER BY r.run_after, r.id
        """,
        [now, dag_id, count, task_id],
    )
    found: dict[int, Past] = {}
    for pk, run_id, run_after, state, instances, seconds, retried in records:
        one = found.setdefault(pk, Past(pk, run_id, run_after))
        one.tally[state] += instances
        one.seconds = max(filter(None, (one.seconds, seconds)), default=None)
        one.retried += retried
    return list(found.values())


def habits(found: list[Past]) -> Habits:
    """No query."""
    tally = sum((one.tally for one in found), Counter[str]())
    ended = sum(tally[state] for state in (states.SUCCESS, states.FAILED))
    begun = ended + sum(tally[state] for state in states.WITH_PROCESS) + tally[states.UP_FOR_RETRY]
    seconds = [one.seconds for one in found if one.seconds is not None and one.tally[states.SUCCESS]]
    return Habits(
        ended=ended,
        success=tally[states.SUCCESS] / ended if ended else None,
        retried=sum(one.retried for one in found) / begun if begun else None,
        usual=median(seconds) if seconds else None,
        slow=quantiles(seconds, n=20, method="inclusive")[-1] if len(seconds) > 1 else None,
    )


def failures(found: list[Past], task_id: str) -> list[Failure]:
    """The newest failed tries in these runs, the newest first. Two queries."""
    runs = {one.run_pk: one.run_id for one in found}
    newest: dict[tuple[int, int, int], Failure] = {}
    # the live row comes last: of a try that is in the history too it says more
    for rows in (TaskInstanceHistory.objects.all(), TaskInstance.objects.all()):
        failed = rows.filter(
            dag_run_id__in=list(runs), task_id=task_id, state__in=_FAILED, end_date__isnull=False
        ).order_by("-end_date", "-id")
        for run, index, number, ended, reason in failed.values_list(
            "dag_run_id", "map_index", "try_number", "end_date", "reason"
        )[:ERRORS]:
            newest[run, index, number] = Failure(runs[run], index, number, ended, reason)
    return sorted(newest.values(), key=lambda one: one.ended, reverse=True)[:ERRORS]
