"""What may happen to the task instances of one run now.

``look`` walks the graph once in topological order, so that a skip is seen by its followers in the same look.
``explain`` (its own module, offered here too) asks the same questions about one instance and answers in sentences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from scheduler_app.engine import skip_lists
from scheduler_app.engine.board import Board, RunFact, Ti
from scheduler_app.engine.dag import Task
from scheduler_app.engine.explain import Verdict, because, explain
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.mapping import Length
from scheduler_app.engine.past import PastFact, Previous, past_refusal
from scheduler_app.engine.states import (
    DEFERRED,
    NONE,
    REMOVED,
    SCHEDULED,
    SKIPPED,
    SUCCESS,
    UP_FOR_RESCHEDULE,
    UP_FOR_RETRY,
    UPSTREAM_FAILED,
    State,
)
from scheduler_app.engine.trigger_rules import RUN, SKIP, UPSTREAM_FAIL, WAIT

__all__ = ["Look", "Move", "PastFact", "Previous", "RunFact", "Ti", "Verdict", "explain", "look"]


class Move(NamedTuple):
    """A verb of ``states.TASK_VERBS`` for one instance. ``reason`` is a sentence where the verb ends the instance."""

    ti_id: Any
    verb: str
    reason: str = ""


@dataclass(slots=True)
class Look:
    """What a look found. Apply ``moves``, then ``expand``; expanded tasks want another look."""

    moves: list[Move] = field(default_factory=list)
    #: (task id, n): instances 0 … n-1 must exist; the one with map index -1 becomes index 0
    expand: list[tuple[str, int]] = field(default_factory=list)
    #: the earliest instant at which time alone changes the answer
    next_check_at: datetime | None = None
    #: how many instances wait, by code: upstream, mapping, past, retry, reschedule, future, held
    waiting: dict[str, int] = field(default_factory=dict)
    #: tasks that got an end in a partial look and have followers outside it: look there next
    touched: set[str] = field(default_factory=set)
    #: tasks with an instance in state None that waits for upstreams or a mapping only: what a deadlock is made of
    stuck: list[str] = field(default_factory=list)

    def wait(self, code: str, until: datetime | None = None) -> None:
        self.waiting[code] = self.waiting.get(code, 0) + 1
        if until is not None and (self.next_check_at is None or until < self.next_check_at):
            self.next_check_at = until


LOOKED_AT: Final = frozenset({NONE, UP_FOR_RETRY, UP_FOR_RESCHEDULE})
_GOALS: Final[dict[str, tuple[str, State]]] = {
    SKIP: ("skip", SKIPPED),
    UPSTREAM_FAIL: ("upstream_fail", UPSTREAM_FAILED),
}


def look(
    graph: Graph,
    tis: Iterable[Ti],
    *,
    run: RunFact,
    now: datetime,
    only: Collection[str] | None = None,
    previous: Previous | None = None,
) -> Look:
    """What may happen now to the instances of the tasks ``only`` (None: of all).

    ``tis`` holds every instance of the looked-at tasks and of all that they need (``Graph.neighbourhood``). Instances
    whose task left the DAG and that have not begun are removed. ``previous`` is read where ``graph.has_past_deps``.
    Applying the result and looking again finds nothing new, but what an expansion brought.
    """
    found = Look()
    board = Board(graph, tis)
    if len(board.rows) > len(graph.tasks) or not board.rows.keys() <= graph.tasks.keys():
        _remove_strangers(board, found)
    if run.logical_date is not None and run.logical_date > now and not run.allow_future:
        found.wait("future", run.logical_date)
        return found
    order: Sequence[str] = graph.order
    if only is not None:
        order = sorted((task_id for task_id in only if task_id in graph.tasks), key=graph.position.__getitem__)
    rows_of = board.rows
    for task_id in order:
        for row in rows_of.get(task_id, ()):
            if row[3] in LOOKED_AT:
                _look_at_task(board, task_id, found, run, now, previous)
                break
    if only is None:
        found.touched.clear()
    else:
        found.touched = {task_id for task_id in found.touched if not set(graph.followers[task_id]).issubset(only)}
    return found


def _remove_strangers(board: Board, found: Look) -> None:
    for task_id in sorted(board.rows.keys() - board.graph.tasks.keys()):
        for ti in board.rows[task_id]:
            if ti.state in LOOKED_AT or ti.state == SCHEDULED:
                found.moves.append(Move(ti.id, "remove", f"Task {task_id} is no longer part of the DAG."))


def _look_at_task(
    board: Board, task_id: str, found: Look, run: RunFact, now: datetime, previous: Previous | None
) -> None:
    graph = board.graph
    task = graph.tasks[task_id]
    rows = board.rows[task_id]
    states = board.states[task_id]
    count = len(rows)
    past = None
    if graph.has_past_deps:
        past = past_refusal(task, previous, run.ignore_past)
    if task_id in graph.skippers:
        _skip_again(board, task, past, found)
    if task_id in graph.mapped_tasks and _expand(board, task_id, found, past):
        return
    for place in range(count):
        state = states[place]
        if state not in LOOKED_AT:
            continue
        ti = rows[place]
        due = ti[6]
        if due is not None and state is not NONE and due > now:
            found.wait("retry" if state == UP_FOR_RETRY else "reschedule", due)
            continue
        answer = board.answer(task_id, ti[2])
        decision = answer[0]
        if decision == WAIT:
            found.wait("upstream")
            if state is NONE:
                found.stuck.append(task_id)
        elif past is not None and (
            decision == RUN or (decision == SKIP and task.wait_for_past_depends_before_skipping)
        ):
            found.wait("past")
        elif decision == RUN:
            _run(board, task, place, ti, found)
        else:
            _end(board, task_id, place, decision, because(board, task_id, answer, ti[2]), found)


def _skip_again(board: Board, task: Task, past: str | None, found: Look) -> None:
    """What a branch decided holds for a follower that was cleared without it."""
    states = board.states[task.task_id]
    for place, ti in enumerate(board.rows[task.task_id]):
        if states[place] not in LOOKED_AT or (past is not None and task.wait_for_past_depends_before_skipping):
            continue
        skipper = board.skipped_by(task.task_id, ti.map_index)
        if skipper is not None:
            _end(board, task.task_id, place, SKIP, skip_lists.reason(skipper), found)


def _run(board: Board, task: Task, place: int, ti: Ti, found: Look) -> None:
    states = board.states[ti[1]]
    if ti[8]:
        found.wait("held")
    elif task.is_empty and states[place] != UP_FOR_RESCHEDULE:
        states[place] = SUCCESS
        found.touched.add(ti[1])
        found.moves.append(Move(ti[0], "settle"))
    elif task.start_trigger is not None and states[place] != UP_FOR_RESCHEDULE:
        states[place] = DEFERRED
        found.moves.append(Move(ti[0], "start_deferred"))
    else:
        states[place] = SCHEDULED
        found.moves.append(Move(ti[0], "schedule"))


def _end(board: Board, task_id: str, place: int, decision: str, reason: str, found: Look) -> None:
    verb, board.states[task_id][place] = _GOALS[decision]
    found.touched.add(task_id)
    found.moves.append(Move(board.rows[task_id][place][0], verb, reason))


def _expand(board: Board, task_id: str, found: Look, past: str | None) -> bool:
    """Give a mapped task the instances of its length. True: nothing more to decide for it in this look.

    A task in a mapped group gets them as soon as the length is known, one whose length the file says at once. Any
    other gets them when its rule lets it run, so that a skip or failure before it leaves one instance, not n.
    """
    rows = board.rows[task_id]
    states = board.states[task_id]
    unexpanded = len(rows) == 1 and rows[0][2] < 0
    if unexpanded and states[0] is not NONE:
        return False
    if not unexpanded:
        _remove_beyond(board, task_id, None, found)
    in_group = task_id in board.graph.map_groups
    length = board.length(task_id)
    if length.value is None:
        return unexpanded and _without_length(board, task_id, length, found)
    if not (in_group or task_id in board.graph.literal_lengths) or (unexpanded and not length.value):
        if board.answer(task_id, -1).decision != RUN:
            return False
        if unexpanded and past is not None:
            found.wait("past")
            return True
    if unexpanded and length.value == 0:
        _end(board, task_id, 0, SKIP, "It is mapped over nothing: what it is mapped over has no elements.", found)
        return True
    return _fit(board, task_id, length.value, unexpanded, found)


def _fit(board: Board, task_id: str, wanted: int, unexpanded: bool, found: Look) -> bool:
    """Ask for the instances that are missing, remove those beyond the length (a cleared upstream may push less)."""
    rows = board.rows[task_id]
    states = board.states[task_id]
    if not unexpanded:
        _remove_beyond(board, task_id, wanted, found)
    present = {ti[2] for ti in rows if ti[2] >= 0} | ({0} if unexpanded else set())
    missing = [index for index in range(wanted) if index not in present] if len(present) < wanted else []
    if missing or unexpanded:
        found.expand.append((task_id, wanted))
        # the new instances have no row yet: followers see as many that have not ended
        rows.extend(Ti(None, task_id, index) for index in missing)
        states.extend([NONE] * len(missing))
    return unexpanded


def _remove_beyond(board: Board, task_id: str, wanted: int | None, found: Look) -> None:
    """Open instances of an expanded task beyond its length, and one without an index (a new DAG version adds it)."""
    states = board.states[task_id]
    for place, ti in enumerate(board.rows[task_id]):
        if states[place] not in LOOKED_AT or (ti[2] >= 0 and (wanted is None or ti[2] < wanted)):
            continue
        reason = "It is mapped and has its instances, so there is none without an index."
        if ti[2] >= 0:
            reason = f"What it is mapped over has {wanted} element(s) now, so there is no index {ti[2]}."
        states[place] = REMOVED
        found.touched.add(task_id)
        found.moves.append(Move(ti[0], "remove", reason))


def _without_length(board: Board, task_id: str, length: Length, found: Look) -> bool:
    """An unexpanded instance without a known length: its rule may end it, or the tasks that it is mapped over."""
    tasks = ", ".join(length.tasks)
    if length.why == "failed":
        reason = f"It is mapped over {tasks}, which did not push a list or dict."
        _end(board, task_id, 0, UPSTREAM_FAIL, reason, found)
    elif board.answer(task_id, -1).decision in _GOALS:
        return False
    elif length.why == "skipped":
        _end(board, task_id, 0, SKIP, f"It is mapped over {tasks}, which was skipped.", found)
    else:
        found.wait("mapping")
        found.stuck.append(task_id)
    return True
