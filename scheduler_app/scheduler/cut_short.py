"""A run that the scheduler ends before its time, for its ``dagrun_timeout`` (F-19) or for the run that takes its place:
its tasks are cut short, but what was set up is torn down.

Teardowns whose setup has succeeded still run, and the run fails when they have ended, for the reason that cut it short.
They have as long as the run had (its ``dagrun_timeout``; without one, as long as they take); then they are cut short
too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.engine import states
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.outcome import Outcome
from scheduler_app.models import DagRun, TaskInstance, Wake, db, transitions
from scheduler_app.models.facts import RunRow
from scheduler_app.scheduler import run_ends
from scheduler_app.scheduler.lost import Hopeless, fail_for_good

_MARK = """
UPDATE scheduler_dag_run r SET cut_short_at = %(now)s, cut_short_as = w.code, cut_short_reason = w.reason,
    state_reason = w.reason || ' Its teardowns run to their end.'
FROM unnest(%(runs)s::bigint[], %(codes)s::text[], %(reasons)s::text[]) AS w(run, code, reason) WHERE r.id = w.run
"""
#: What has begun, when running tasks are to end as failed.
_BEGUN = states.WITH_PROCESS | {states.DEFERRED}


class Cut(NamedTuple):
    """A run and why it is cut short."""

    row: RunRow
    graph: Graph
    outcome: Outcome


def due_at(row: RunRow, graph: Graph) -> datetime | None:
    """When the run, or what is left of it after it was cut short, has taken too long."""
    since = row.cut_short_at or row.start_date
    seconds = graph.dag.dagrun_timeout
    return None if seconds is None or since is None else since + timedelta(seconds=seconds)


def outcomes(run_ids: Collection[int]) -> dict[int, Outcome]:
    """Of runs that were cut short: what they end as, whatever their leaves say."""
    rows = DagRun.objects.filter(pk__in=run_ids, cut_short_as__isnull=False)
    ends = rows.values_list("pk", "cut_short_as", "cut_short_reason")
    return {key: Outcome(states.FAILED, code, reason) for key, code, reason in ends}


def cut_short(cuts: Sequence[Cut], now: datetime, running_end_as: str) -> list[int]:
    """Ends these runs, or all of them but their teardowns; what was cut short before ends now, for its first reason.

    Returns the keys of those that have ended. The runs must be locked. ``running_end_as``: skipped, or failed, of what
    has begun.
    """
    if not cuts:
        return []
    first = outcomes([one.row.id for one in cuts if one.row.cut_short_at is not None])
    ends = {one.row.id: first.get(one.row.id, one.outcome) for one in cuts}
    open_tasks = TaskInstance.objects.filter(dag_run_id__in=ends).exclude(state__in=states.FINISHED).order_by("pk")
    tasks = list(open_tasks)
    spared = _teardowns([one for one in cuts if one.row.id not in first and one.row.state == states.RUNNING], tasks)
    failing, skipping = [], []
    for task in tasks:
        if task.pk not in spared:
            fails = running_end_as == states.FAILED and task.state in _BEGUN
            (failing if fails else skipping).append(Hopeless(task.pk, ends[task.dag_run_id].reason))
    fail_for_good(failing, now)
    keys, reason = [one.ti_id for one in skipping], [one.reason for one in skipping]
    transitions.tasks("skip", keys, now, wake=False, reason=reason)
    going_on = sorted({task.dag_run_id for task in tasks if task.pk in spared})
    if going_on:
        codes, reasons = [ends[key].code for key in going_on], [ends[key].reason for key in going_on]
        db.execute(_MARK, {"runs": going_on, "codes": codes, "reasons": reasons, "now": now})
        Wake.objects.add(going_on, "cut_short", now)
    return run_ends.end_runs([(row, graph, ends[row.id]) for row, graph, _ in cuts if row.id not in going_on], now)


def _teardowns(cuts: Sequence[Cut], tasks: Sequence[TaskInstance]) -> set[int]:
    """Open instances of teardowns that have something to tear down, or have begun to."""
    graphs: Mapping[int, Graph] = {one.row.id: one.graph for one in cuts}
    setups: dict[int, set[str]] = defaultdict(set)
    wanted = {name for graph in graphs.values() for names in graph.setups_of.values() for name in names}
    if wanted:
        done = TaskInstance.objects.filter(dag_run_id__in=graphs, task_id__in=wanted, state=states.SUCCESS)
        for run_id, task_id in done.values_list("dag_run_id", "task_id"):
            setups[run_id].add(task_id)
    found = set()
    for task in tasks:
        graph = graphs.get(task.dag_run_id)
        if graph is None or task.task_id not in graph.tasks or not graph.tasks[task.task_id].is_teardown:
            continue
        mine = graph.setups_of.get(task.task_id, ())
        if task.state in _BEGUN or not mine or setups[task.dag_run_id].intersection(mine):
            found.add(task.pk)
    return found
