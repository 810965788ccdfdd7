"""Which instances a branch or a short circuit may still skip when it ends.

The child computes the task ids (only it knows the operator's rules: direct followers less those below the chosen arm,
or everything below a short circuit); this module turns them into moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduler_app.engine.board import Ti
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.readiness import Move
from scheduler_app.engine.states import (
    NONE,
    SCHEDULED,
    UP_FOR_RESCHEDULE,
    UP_FOR_RETRY,
)

#: Never one that is handed out or has a process: what runs is not taken away by a skip.
SKIPPABLE = frozenset({NONE, SCHEDULED, UP_FOR_RETRY, UP_FOR_RESCHEDULE})


def skips_after(
    graph: Graph, task_id: str, skip: Sequence[str | Sequence[object]], tis: Iterable[Ti], *, map_index: int = -1
) -> list[Move]:
    """The moves for an outcome's ``skip`` list (``task_id`` or ``[task_id, map_index]``) of the attempt that ended.

    An entry without an index means every instance; inside the mapped group that the ended task is in, only those of its
    own index. Teardowns named by a short circuit are the child's choice, ids that left the DAG are ignored.
    """
    wanted: dict[str, set[int] | None] = {}
    own = graph.map_groups.get(task_id)
    for entry in skip:
        if not isinstance(entry, str):
            name, index = str(entry[0]), entry[1]
            known = wanted.setdefault(name, set())
            if known is not None and isinstance(index, int):
                known.add(index)
        elif map_index >= 0 and own is not None and graph.map_groups.get(entry) == own:
            wanted[entry] = {map_index}
        else:
            wanted[entry] = None
    moves = []
    for ti in tis:
        if ti.task_id not in wanted or ti.state not in SKIPPABLE or ti.task_id not in graph.tasks:
            continue
        indexes = wanted[ti.task_id]
        if indexes is None or ti.map_index in indexes:
            moves.append(Move(ti.id, "skip", f"Task {task_id} skipped it."))
    return moves
