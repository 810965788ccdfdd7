"""Attempts that will not report any more: their process, their heartbeat or their time is gone (F-11, F-27, I3).

A hand-out that had not begun goes back to be scheduled and consumes no try; one that had begun is a failed try, which
is retried or ends, with the reason stored. The fence makes sure that only the hand-out in question is judged.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app import metrics
from scheduler_app.engine import states
from scheduler_app.engine.dag import Task
from scheduler_app.engine.retries import Retry, after_failure, cleared, instance_key
from scheduler_app.models import Callback, TaskInstance, graphs, transitions
from scheduler_app.models.effect import Try, Wanted, of_task

log = logging.getLogger("scheduler_app.scheduler")


class Gone(NamedTuple):
    """A hand-out to judge, and what happened to it, in words that a person reads on the task's page."""

    ti_id: int
    fence: int
    reason: str


class Hopeless(NamedTuple):
    """A task instance that can never run, and why."""

    ti_id: int
    reason: str


def end_attempts(gone: Sequence[Gone], now: datetime) -> int:
    """Judges hand-outs that are gone; returns how many task instances moved."""
    if not gone:
        return 0
    reasons = {(one.ti_id, one.fence): one.reason.replace("\0", "") for one in gone}
    rows = TaskInstance.objects.filter(pk__in=[one.ti_id for one in gone]).order_by("pk")
    found = [row for row in rows if (row.pk, row.fence) in reasons]
    tasks = _tasks(found)
    plan: dict[str, list[_Judged]] = defaultdict(list)
    for row in found:
        verb, columns = _judge(row, tasks.get(row.pk) or Task(row.task_id), reasons[row.pk, row.fence], now)
        if verb:
            plan[verb].append((row, columns))
    return _move(plan, tasks, now)


def fail_for_good(hopeless: Sequence[Hopeless], now: datetime, *, wait: bool = True) -> int:
    """Ends task instances that can never run, without a further try; returns how many moved. ``wait=False`` leaves out
    those that somebody holds."""
    if not hopeless:
        return 0
    reasons = dict(hopeless)
    rows = list(TaskInstance.objects.filter(pk__in=reasons).order_by("pk"))
    return _move({"fail": [(row, {"reason": reasons[row.pk]}) for row in rows]}, _tasks(rows), now, wait=wait)


_Judged = tuple[TaskInstance, dict[str, Any]]


def _tasks(rows: Sequence[TaskInstance]) -> dict[int, Task]:
    """Row → its task. A definition that is missing or cannot be read leaves its rows out: they end all the same."""
    compiled, errors = graphs.readable(row.dag_version_id for row in rows if row.dag_version_id is not None)
    for version, error in errors.items():
        log.error("DAG version %s cannot be read (%s): what its tasks lost is judged without it", version, error)
    return {
        row.pk: task
        for row in rows
        if row.dag_version_id in compiled and (task := compiled[row.dag_version_id].tasks.get(row.task_id)) is not None
    }


def _judge(row: TaskInstance, task: Task, reason: str, now: datetime) -> tuple[str, dict[str, Any]]:
    """The verb for a hand-out that is gone, and the columns that go with it; "" when its row has moved on."""
    if row.state == states.QUEUED:
        metrics.HAND_OUTS_LOST.inc()
        return "unqueue", {}
    if row.state == states.RESTARTING:
        return "retry", {"reason": cleared(row.reason), "next_at": now}
    if row.state not in (states.RUNNING, states.DEFERRED):
        return "", {}
    metrics.TASKS_LOST.inc()
    key = instance_key(row.dag_run_id, row.task_id, row.map_index)
    fate = after_failure(task, row.try_number, row.max_tries, now, jitter_key=key)
    if isinstance(fate, Retry):
        return "retry", {"reason": reason, "next_at": fate.at}
    return "fail", {"reason": f"{reason} {fate.reason}"}


def _move(plan: Mapping[str, Sequence[_Judged]], tasks: Mapping[int, Task], now: datetime, *, wait: bool = True) -> int:
    """Moves what is still as it was judged, and asks for the callbacks and mails of what moved."""
    count = 0
    wanted: list[Wanted] = []
    for verb, judged in plan.items():
        columns = {name: [values[name] for _, values in judged] for name in judged[0][1]}
        fences = [row.fence for row, _ in judged]
        keys = [row.pk for row, _ in judged]
        moved = set(transitions.tasks(verb, keys, now, fences=fences, wait=wait, tells=True, **columns))
        count += len(moved)
        kind = {"retry": "retry", "fail": "failure"}.get(verb)
        for row, values in judged:
            task = tasks.get(row.pk)
            was_cleared = row.state == states.RESTARTING
            if kind is not None and row.pk in moved and task is not None and not was_cleared:
                of = Try(row.pk, row.fence, row.dag_id, row.dag_run_id, row.try_number)
                reason = values["reason"]
                wanted += of_task(task, kind, of, {"error": {"type": "", "message": reason}, "reason": reason})
    Callback.objects.want(wanted, now)
    return count
