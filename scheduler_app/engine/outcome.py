"""How a run ends: from its leaves, or because nothing in it can move any more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from scheduler_app.engine.board import Ti
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.readiness import Look, Move
from scheduler_app.engine.states import (
    FAILED,
    FINISHED,
    NONE,
    SUCCESS,
    UPSTREAM_FAILED,
    WITH_PROCESS,
    State,
)
from scheduler_app.engine.wording import counted

#: What decides a run: its leaves (Airflow), or any failed task of it.
RunStateRule = Literal["leaves", "any_failed"]
_BAD = frozenset({FAILED, UPSTREAM_FAILED})


class Outcome(NamedTuple):
    """``state`` is ``success``, ``failed`` or None (the run goes on); ``reason`` is a sentence, ``code`` its kind:
    ``success``, ``task_failure``, ``all_tasks_deadlocked``, ``timed_out`` or ``unfinished``."""

    state: str | None
    code: str
    reason: str


def outcome(
    graph: Graph,
    tis: Iterable[tuple[str, State]],
    *,
    all_ended: bool | None = None,
    rule: RunStateRule = "leaves",
) -> Outcome:
    """What a run has come to, from (task id, state) pairs.

    Either every instance of the run (``all_ended`` None: it is seen from them), or, when the caller knows that no
    instance is open (``all_ended`` true), those of ``graph.leaves`` alone; the rule ``any_failed`` then also wants
    every instance that failed. A run without instances ends in success.
    """
    pairs = list(tis)
    open_ = [task_id for task_id, state in pairs if state not in FINISHED]
    if all_ended is False or (all_ended is None and open_):
        return Outcome(None, "unfinished", f"{counted(len(open_), 'task instance')} not ended yet.")
    deciding = frozenset(graph.leaves) if rule == "leaves" else None
    failed = [task_id for task_id, state in pairs if state in _BAD and (deciding is None or task_id in deciding)]
    if failed:
        what = "Of its last tasks" if rule == "leaves" else "Of its tasks"
        return Outcome(FAILED, "task_failure", f"{what} these did not succeed: {_names(failed)}.")
    return Outcome(SUCCESS, "success", "Every task that decides the run ended in success or was skipped.")


def timed_out(graph: Graph) -> Outcome:
    """The end of a run that took longer than its ``dagrun_timeout``."""
    seconds = graph.dag.dagrun_timeout
    length = "" if seconds is None else f" of {seconds:g} s"
    return Outcome(FAILED, "timed_out", f"The run took longer than its dagrun_timeout{length}.")


def deadlock(graph: Graph, tis: Iterable[Ti], look: Look) -> Outcome | None:
    """The end of a run that can never move again, given a look at *all* of it; None while something may still happen.

    That is so when nothing was scheduled or expanded, no instance has begun or waits for a time, a person or another
    run, and some wait for upstreams. The usual cause is an instance that is missing (deleted, or outside its dates);
    its task is named.
    """
    if look.expand or look.next_check_at is not None or not look.stuck or look.waiting.keys() - {"upstream", "mapping"}:
        return None
    ending: set[object] = set()
    for move in look.moves:
        if move.verb == "schedule":
            return None
        ending.add(move.ti_id)
    present: set[str] = set()
    for ti in tis:
        present.add(ti.task_id)
        if ti.state not in FINISHED and ti.state is not NONE and ti.id not in ending:
            return None
    missing = sorted({need for task_id in look.stuck for need in graph.needs[task_id]} - present)
    reason = f"Nothing can run any more, and {_names(look.stuck)} never will."
    if missing:
        reason += f" The run has no instance of {_names(missing)}, which they wait for."
    return Outcome(FAILED, "all_tasks_deadlocked", reason)


def fail_fast_moves(graph: Graph, tis: Iterable[Ti], failed_task_id: str) -> list[Move]:
    """What ends the rest of a ``fail_fast`` DAG's run when a task has failed for good: running instances fail,
    those that have not begun are skipped. Teardowns go on, and the failure of one stops nothing."""
    if not graph.dag.fail_fast or graph.tasks[failed_task_id].is_teardown:
        return []
    moves = []
    for ti in tis:
        task = graph.tasks.get(ti.task_id)
        if ti.state in FINISHED or ti.task_id == failed_task_id or (task is not None and task.is_teardown):
            continue
        verb = "fail" if ti.state in WITH_PROCESS else "skip"
        moves.append(Move(ti.id, verb, f"The DAG fails fast, and task {failed_task_id} failed."))
    return moves


def _names(task_ids: Iterable[str], most: int = 5) -> str:
    names = list(dict.fromkeys(task_ids))
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
