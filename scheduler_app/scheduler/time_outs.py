"""A run that took longer than its ``dagrun_timeout`` (F-19): its tasks are cut short, but what was set up is torn down.

Teardowns whose setup has succeeded still run, and the run fails when they have ended. They have as long as the run had;
then they are cut short too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.engine import states
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.outcome import timed_out
from scheduler_app.models import TaskInstance, Wake, db, transitions
from scheduler_app.models.facts import RunRow
from scheduler_app.scheduler import run_ends
from scheduler_app.scheduler.lost import Hopeless, fail_for_good

_MARK = """
UPDATE scheduler_dag_run SET timed_out_at = %(now)s, state_reason = 'It timed out; its teardowns run to their end.'
WHERE id = ANY(%(runs)s)
"""
#: What has begun, when running tasks are to end as failed.
_BEGUN = states.WITH_PROCESS | {states.DEFERRED}


class Late(NamedTuple):
    row: RunRow
    graph: Graph


def due_at(row: RunRow, graph: Graph) -> datetime | None:
    """When the run, or after its time-out the rest of it, has taken too long."""
    since = row.timed_out_at or row.start_date
    seconds = graph.dag.dagrun_timeout
    return None if seconds is None or since is None else since + timedelta(seconds=seconds)


def cut_short(late: Sequence[Late], now: datetime, running_end_as: str) -> None:
    """Ends these runs, or all of them but their teardowns. The runs must be locked. ``running_end_as``: skipped, or
    failed, of what has begun."""
    if not late:
        return
    graphs = {row.id: graph for row, graph in late}
    open_tasks = TaskInstance.objects.filter(dag_run_id__in=graphs).exclude(state__in=states.FINISHED).order_by("pk")
    tasks = list(open_tasks)
    spared = _teardowns([one for one in late if one.row.timed_out_at is None], tasks)
    ending = [task for task in tasks if task.pk not in spared]
    reasons = {key: timed_out(graph).reason for key, graph in graphs.items()}
    failing, skipping = [], []
    for task in ending:
        fails = running_end_as == states.FAILED and task.state in _BEGUN
        (failing if fails else skipping).append(Hopeless(task.pk, reasons[task.dag_run_id]))
    fail_for_good(failing, now)
    keys, reason = [one.ti_id for one in skipping], [one.reason for one in skipping]
    transitions.tasks("skip", keys, now, wake=False, reason=reason)
    going_on = sorted({task.dag_run_id for task in tasks if task.pk in spared})
    if going_on:
        db.execute(_MARK, {"runs": going_on, "now": now})
        Wake.objects.add(going_on, "timed_out", now)
    over = [(row, graph, timed_out(graph)) for row, graph in late if row.id not in going_on]
    run_ends.end_runs(over, now)


def _teardowns(late: Sequence[Late], tasks: Sequence[TaskInstance]) -> set[int]:
    """Open instances of teardowns that have something to tear down, or have begun to."""
    graphs: Mapping[int, Graph] = {row.id: graph for row, graph in late}
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
