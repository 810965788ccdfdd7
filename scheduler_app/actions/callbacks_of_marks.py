"""Whether a mark by a person asks for the callbacks of the author, as an end by itself does: ``callbacks_on_mark``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.models import Callback, DagRun, TaskInstance
from scheduler_app.models.effect import Wanted
from scheduler_app.models.graphs import readable

#: State of the mark → the callback that belongs to it.
_KINDS = {states.SUCCESS: "success", states.FAILED: "failure", states.SKIPPED: "skipped"}


def of_tasks(rows: Sequence[TaskInstance], state: str, words: str, now: datetime) -> None:
    """Rows for those of the marked task instances whose task has such a callback; in the mark's own transaction."""
    if not conf().callbacks_on_mark:
        return
    kind = _KINDS[state]
    graphs = readable({row.dag_version_id for row in rows if row.dag_version_id}).graphs
    wanted = []
    for row in rows:
        graph = graphs.get(row.dag_version_id) if row.dag_version_id else None
        task = graph.tasks.get(row.task_id) if graph else None
        if task is None or kind not in task.callbacks:
            continue
        key = f"task_{kind}:{row.pk}:{row.fence}:marked {row.try_number}"
        error = {"type": "", "message": words} if kind == "failure" else None
        payload = {"error": error, "reason": words}
        wanted.append(Wanted(f"task_{kind}", key, row.dag_id, row.dag_run_id, payload, row.pk, row.try_number))
    Callback.objects.want(wanted, now)


def of_runs(runs: Sequence[DagRun], state: str, words: str, now: datetime) -> None:
    """As :func:`of_tasks`, for runs that end by their mark."""
    kind = _KINDS.get(state)
    if not conf().callbacks_on_mark or kind is None:
        return
    compiled = readable(run.dag_version_id for run in runs if run.dag_version_id).graphs
    payload = {"reason": "marked", "text": words}
    wanted = [
        Wanted(f"dag_{kind}", f"dag_{kind}:{run.pk}:{run.clear_number}", run.dag_id, run.pk, payload)
        for run in runs
        if run.dag_version_id in compiled and kind in compiled[run.dag_version_id].dag.callbacks
    ]
    Callback.objects.want(wanted, now)
