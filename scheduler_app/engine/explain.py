"""Why a task instance does not run: the questions of ``readiness.look``, answered in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from scheduler_app.engine.board import Answer, Board, RunFact, Ti
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.past import Previous, past_refusal
from scheduler_app.engine.states import (
    FAILED,
    FINISHED,
    NONE,
    REMOVED,
    SKIPPED,
    SUCCESS,
    UP_FOR_RESCHEDULE,
    UP_FOR_RETRY,
    UPSTREAM_FAILED,
)
from scheduler_app.engine.trigger_rules import NEEDS, RUN, SKIP, WAIT
from scheduler_app.engine.wording import counted

#: How many task names a sentence lists before it says "and n more".
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer to "why is this not running?": ``text`` is a sentence for people, ``facts`` the values behind it."""

    code: str
    ok: bool
    text: str
    facts: dict[str, Any] = field(default_factory=dict)


def explain(
    graph: Graph,
    tis: Iterable[Ti],
    task_id: str,
    map_index: int,
    run: RunFact,
    now: datetime,
    previous: Previous | None = None,
) -> list[Verdict]:
    """Every condition of one instance, met or not, in the scheduler's order. KeyError: the run has no such instance.

    What comes after "scheduled" (pools and other limits) is answered by ``admission``.
    """
    board = Board(graph, tis)
    ti = next((ti for ti in board.rows.get(task_id, ()) if ti.map_index == map_index), None)
    if ti is None:
        raise KeyError(f"The run has no instance {map_index} of task {task_id}.")
    verdicts = [*explain_run(run, now), _of_state(ti)]
    if ti.state not in (NONE, UP_FOR_RETRY, UP_FOR_RESCHEDULE):
        return verdicts
    if task_id not in graph.tasks:
        text = f"Task {task_id} is no longer part of the DAG: its instance will be removed."
        return [*verdicts, Verdict("task_removed", False, text)]
    verdicts += _of_time(ti, now)
    skipper = board.skipped_by(task_id, map_index)
    if skipper is not None:
        text = f"Task {skipper} decided to skip it: clear {skipper} too to have it decide again."
        verdicts.append(Verdict("branch", False, text, {"task": skipper}))
    verdicts.append(_of_upstreams(board, ti))
    verdicts += _of_mapping(board, ti)
    task = graph.tasks[task_id]
    if task.depends_on_past or task.wait_for_downstream:
        refusal = past_refusal(task, previous, run.ignore_past)
        text = f"{refusal} Clear or mark it there." if refusal else "The previous run lets it go on."
        verdicts.append(Verdict("past", refusal is None, text))
    if ti.held:
        verdicts.append(Verdict("held", False, "Somebody holds this task: release it to let it run."))
    return verdicts


def explain_run(run: RunFact, now: datetime) -> list[Verdict]:
    """What holds for every instance of a run: whether it runs, is paused or held, or lies in the future."""
    found = []
    if run.state == "running":
        found.append(Verdict("run_state", True, "The run is running."))
    else:
        found.append(Verdict("run_state", False, f"The run is {run.state}, not running.", {"state": run.state}))
    if run.is_paused:
        found.append(Verdict("paused", False, "The DAG is paused: unpause it to let its runs go on."))
    if run.held:
        found.append(Verdict("run_held", False, "Somebody holds this run: release it to let it go on."))
    if run.logical_date is not None and run.logical_date > now and not run.allow_future:
        text = f"The run's logical date {_when(run.logical_date)} lies in the future; it executes nothing before."
        found.append(Verdict("future", False, text, {"until": run.logical_date.isoformat()}))
    return found


def _of_state(ti: Ti) -> Verdict:
    if ti.state in (NONE, UP_FOR_RETRY, UP_FOR_RESCHEDULE):
        return Verdict("state", True, "It has not been scheduled yet.", {"state": ti.state})
    if ti.state in FINISHED:
        return Verdict("state", False, f"It has ended as {ti.state}: clear it to run it again.", {"state": ti.state})
    return Verdict("state", True, f"It is {ti.state}: its upstreams let it run.", {"state": ti.state})


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S %Z}"


def _of_time(ti: Ti, now: datetime) -> list[Verdict]:
    if ti.state not in (UP_FOR_RETRY, UP_FOR_RESCHEDULE) or ti.next_at is None:
        return []
    is_due, until = ti.next_at <= now, {"until": ti.next_at.isoformat()}
    if ti.state == UP_FOR_RESCHEDULE:
        text = "Its next poke is due." if is_due else f"It waits for its next poke at {_when(ti.next_at)}."
        return [Verdict("reschedule", is_due, text, until)]
    text = f"It waits for its next try at {_when(ti.next_at)}. Clear it to try at once."
    return [Verdict("retry", is_due, "Its next try is due." if is_due else text, until)]


def _of_upstreams(board: Board, ti: Ti) -> Verdict:
    answer = board.answer(ti.task_id, ti.map_index)
    rule = board.graph.tasks[ti.task_id].trigger_rule
    facts = {"trigger_rule": rule, **answer.counts._asdict()}
    if not board.graph.upstream[ti.task_id] and not answer.scope:
        return Verdict("trigger_rule", True, "It has no upstream tasks.", facts)
    if answer.decision == RUN:
        return Verdict("trigger_rule", True, f"Its trigger rule {rule} is met.", facts)
    return Verdict("trigger_rule", False, because(board, ti.task_id, answer, ti.map_index), facts)


def _of_mapping(board: Board, ti: Ti) -> list[Verdict]:
    if ti.map_index >= 0 or ti.task_id not in board.graph.mapped_tasks:
        return []
    length = board.length(ti.task_id)
    facts = {"length": length.value, "tasks": list(length.tasks)}
    if length.value is not None:
        return [Verdict("mapping", True, f"It will have {counted(length.value, 'instance')}.", facts)]
    what = {"waiting": "have not ended", "failed": "did not push a list or dict", "skipped": "were skipped"}[length.why]
    text = f"It is mapped over the results of {_names(length.tasks)}, which {what}."
    return [Verdict("mapping", False, text, facts)]


def because(board: Board, task_id: str, answer: Answer, map_index: int = -1) -> str:
    """The sentence for an answer that is not "run"; it names the tasks to blame or to wait for."""
    graph = board.graph
    if answer.scope:
        wish = "the setups around it to succeed"
        upstream: tuple[str, ...] = graph.scope_setups[task_id]
    else:
        wish = NEEDS[graph.tasks[task_id].trigger_rule]
        upstream = graph.upstream[task_id]
    of = {up: _states_of(board, task_id, map_index, up) for up in upstream}
    if answer.decision == WAIT:
        open_ = [up for up, states in of.items() if not states or not set(states) <= FINISHED]
        shown = _names(f"{up} ({_standing(of[up])})" for up in open_)
        return f"It waits for {wish}; {shown} {'has' if len(open_) == 1 else 'have'} not ended."
    parts = []
    for state in (FAILED, UPSTREAM_FAILED, SKIPPED, SUCCESS):
        named = [up for up, states in of.items() if state in states]
        if named:
            parts.append(f"{_names(named)}: {state}")
    verdict = "is skipped" if answer.decision == SKIP else "cannot run"
    return f"It {verdict}: it needs {wish} ({'; '.join(parts)})."


def _standing(states: list[Any]) -> str:
    """How an upstream that has not ended stands: its state, or how many of its instances have ended."""
    if len(states) > 1:
        return f"{sum(state in FINISHED for state in states)} of {len(states)} ended"
    return (states[0] if states else None) or "not scheduled"


def _states_of(board: Board, task_id: str, map_index: int, up: str) -> list[Any]:
    states = board.relevant(task_id, map_index).get(up, []) if map_index >= 0 else board.states.get(up, [])
    return [state for state in states if state != REMOVED]


def _names(task_ids: Iterable[str]) -> str:
    names = list(task_ids)
    if len(names) <= _NAMED:
        return ", ".join(names)
    return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
