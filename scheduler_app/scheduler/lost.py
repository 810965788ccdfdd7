"""Attempts that will not report any more: their process, their heartbeat or their time is gone (F-11, F-27, I3).

A hand-out that had not begun goes back to be scheduled and consumes no try; one that had begun is a failed try, which
is retried or ends, with the reason stored. The fence makes sure that only the hand-out in question is judged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app import metrics
from scheduler_app.engine import states
from scheduler_app.engine.dag import Task
from scheduler_app.engine.retries import Retry, after_failure
from scheduler_app.models import Callback, TaskInstance, graphs, transitions
from scheduler_app.models.effect import Wanted


class Gone(NamedTuple):
    """A hand-out to judge, and what happened to it, in words that a person reads on the task's page."""

    ti_id: int
    fence: int
    reason: str


def end_attempts(gone: Sequence[Gone], now: datetime) -> int:
    """Judges hand-outs that are gone; returns how many task instances moved."""
    if not gone:
        return 0
    reasons = {(one.ti_id, one.fence): one.reason for one in gone}
    rows = TaskInstance.objects.filter(pk__in=[one.ti_id for one in gone]).order_by("pk")
    found = [row for row in rows if (row.pk, row.fence) in reasons]
    compiled = graphs.graphs_of(row.dag_version_id for row in found if row.dag_version_id is not None)
    plan: dict[str, list[tuple[TaskInstance, dict[str, Any]]]] = defaultdict(list)
    for row in found:
        graph = compiled.get(row.dag_version_id) if row.dag_version_id is not None else None
        task = graph.tasks.get(row.task_id) if graph is not None else None
        verb, columns = _judge(row, task or Task(row.task_id), reasons[row.pk, row.fence], now)
        if verb:
            plan[verb].append((row, columns))
    moved = sum(_move(verb, judged, now) for verb, judged in plan.items())
    wanted = [_callback(verb, row, columns) for verb in ("retry", "fail") for row, columns in plan[verb]]
    kinds = {
        row.pk: set(compiled[row.dag_version_id].tasks[row.task_id].callbacks)
        for row in found
        if row.dag_version_id in compiled and row.task_id in compiled[row.dag_version_id].tasks
    }
    Callback.objects.want(
        [one for one in wanted if one.kind.removeprefix("task_") in kinds.get(one.task_instance_id or 0, ())], now
    )
    return moved


def _judge(row: TaskInstance, task: Task, reason: str, now: datetime) -> tuple[str, dict[str, Any]]:
    """The verb for a hand-out that is gone, and the columns that go with it; "" when its row has moved on."""
    if row.state == states.QUEUED:
        metrics.HAND_OUTS_LOST.inc()
        return "unqueue", {}
    if row.state == states.RESTARTING:
        return "retry", {"reason": "It was cleared while it ran.", "next_at": now}
    if row.state not in (states.RUNNING, states.DEFERRED):
        return "", {}
    metrics.TASKS_LOST.inc()
    fate = after_failure(task, row.try_number, row.max_tries, now, jitter_key=f"{row.dag_run_id}.{row.task_id}")
    if isinstance(fate, Retry):
        return "retry", {"reason": reason, "next_at": fate.at}
    return "fail", {"reason": f"{reason} {fate.reason}"}


def _move(verb: str, judged: Sequence[tuple[TaskInstance, dict[str, Any]]], now: datetime) -> int:
    columns = {name: [values[name] for _, values in judged] for name in judged[0][1]} if judged else {}
    return len(
        transitions.tasks(verb, [row.pk for row, _ in judged], now, fences=[row.fence for row, _ in judged], **columns)
    )


def _callback(verb: str, row: TaskInstance, columns: dict[str, Any]) -> Wanted:
    kind = "task_retry" if verb == "retry" else "task_failure"
    key = f"{kind}:{row.pk}:{row.fence}"
    return Wanted(kind, key, row.dag_id, row.dag_run_id, {"error": columns["reason"]}, row.pk, row.try_number)
