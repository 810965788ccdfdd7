"""How far another DAG is: the counting behind ExternalTaskSensor and its trigger."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from scheduler_app.sdk.runtime import current_port


def count_matches(
    *,
    dag_id: str,
    task_ids: Sequence[str] | None,
    group_id: str | None,
    logical_dates: Sequence[dt.datetime] | None,
    run_ids: Sequence[str] | None,
    states: Sequence[str],
    whole: bool,
) -> float:
    """How many runs are in one of ``states``: by all of the named tasks, by a group, or as runs.

    ``whole``: a group counts when all its tasks are in the states; else when one is. Tasks count as a part of a run.
    """
    port = current_port()
    names = [str(state) for state in states]
    where: dict[str, Any] = {"dag_id": dag_id, "logical_dates": logical_dates, "run_ids": run_ids}
    if task_ids:
        return port.get_ti_count(task_ids=task_ids, states=names, **where) / len(task_ids)
    if group_id:
        found = port.get_task_states(task_group_id=group_id, **where)
        test = all if whole else any
        return sum(1 for tasks in found.values() if tasks and test(state in names for state in tasks.values()))
    return port.get_dr_count(states=names, **where)
