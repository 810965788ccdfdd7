"""Which instances a branch or a short circuit may still skip when it ends."""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_app.engine import skip_lists
from scheduler_app.engine.board import Ti
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.readiness import Move
from scheduler_app.engine.skip_lists import SkipList
from scheduler_app.engine.states import (
    NONE,
    SCHEDULED,
    UP_FOR_RESCHEDULE,
    UP_FOR_RETRY,
)

#: Never one that is handed out or has a process: what runs is not taken away by a skip.
SKIPPABLE = frozenset({NONE, SCHEDULED, UP_FOR_RETRY, UP_FOR_RESCHEDULE})


def skips_after(graph: Graph, task_id: str, skip: SkipList, tis: Iterable[Ti], *, map_index: int = -1) -> list[Move]:
    """The moves for an outcome's ``skip`` list of the attempt that ended, as :func:`skip_lists.named` reads it."""
    wanted = skip_lists.named(graph, task_id, map_index, skip)
    moves = []
    for ti in tis:
        if ti.task_id not in wanted or ti.state not in SKIPPABLE:
            continue
        indexes = wanted[ti.task_id]
        if indexes is None or ti.map_index in indexes:
            moves.append(Move(ti.id, "skip", skip_lists.reason(task_id)))
    return moves
