"""What an instance asks of the run before its own: ``depends_on_past`` and ``wait_for_downstream``."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from scheduler_app.engine.dag import Task
from scheduler_app.engine.states import SKIPPED, SUCCESS, State
from scheduler_app.engine.wording import counted

_GOOD: Final = frozenset({SUCCESS, SKIPPED})


class PastFact(NamedTuple):
    """One task in the previous run."""

    #: states of its instances there; empty = it had none
    states: tuple[State, ...] = ()
    #: states of its direct followers' instances there; read only with ``wait_for_downstream``
    downstream_states: tuple[State, ...] = ()
    #: some older run has an instance of it
    ever: bool = False


class Previous(NamedTuple):
    """The run before this one: with catch-up the previous *scheduled* run, else the previous of any type."""

    run_id: str
    logical_date: datetime | None
    tasks: Mapping[str, PastFact]
    #: the DAG has catch-up: a run from before a task's own start date does not count for it
    catchup: bool = False


def past_refusal(task: Task, previous: Previous | None, ignore_past: bool = False) -> str | None:
    """Why the past does not let this task run, as a sentence; None when it does. ``previous`` None: no run before."""
    if previous is None or ignore_past or not (task.depends_on_past or task.wait_for_downstream):
        return None
    if previous.catchup and _before_its_start(task, previous.logical_date):
        return None
    fact = previous.tasks.get(task.task_id, PastFact())
    if not fact.states:
        if task.ignore_first_depends_on_past and not fact.ever:
            return None
        return f"It depends on its past, and the previous run {previous.run_id} has no instance of it."
    bad = sum(state not in _GOOD for state in fact.states)
    if bad:
        return (
            f"It depends on its past: in the previous run {previous.run_id}, {bad} of its "
            f"{counted(len(fact.states), 'instance')} did not end in success or skipped."
        )
    behind = sum(state not in _GOOD for state in fact.downstream_states)
    if task.wait_for_downstream and behind:
        return (
            f"It waits for downstream: in the previous run {previous.run_id}, {counted(behind, 'instance')} of the "
            "tasks after it did not end in success or skipped."
        )
    return None


def _before_its_start(task: Task, logical_date: datetime | None) -> bool:
    if task.start_date is None or logical_date is None:
        return False
    return logical_date < datetime.fromisoformat(task.start_date)
