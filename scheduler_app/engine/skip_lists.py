"""Whom the ``skip`` list of an outcome names (docs/borders.md §3): what a branch or a short circuit decided.

The child computes it (only it knows the operator's rules: direct followers less those below the chosen arm, or
everything below a short circuit); it is kept with the task instance, so that a follower cleared alone is skipped again.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_app.engine.graph import Graph

#: ``task_id`` or ``[task_id, map_index]`` each
SkipList = Sequence[str | Sequence[object]]
#: task id → its indexes, None = every instance
Named = dict[str, set[int] | None]


def named(graph: Graph, task_id: str, map_index: int, skip: SkipList) -> Named:
    """Whom the list of the instance `map_index` of a task means. Ids that left the DAG are ignored.

    An entry without an index means every instance; inside the mapped group that the ended task is in, only those of its
    own index.
    """
    found: Named = {}
    own = graph.map_groups.get(task_id)
    for entry in skip:
        name = entry if isinstance(entry, str) else str(entry[0])
        if name not in graph.tasks:
            continue
        if not isinstance(entry, str):
            known = found.setdefault(name, set())
            if known is not None and isinstance(entry[1], int):
                known.add(entry[1])
        elif map_index >= 0 and own is not None and graph.map_groups.get(name) == own:
            found[name] = {map_index}
        else:
            found[name] = None
    return found


def reason(task_id: str) -> str:
    """Why an instance that such a list names was skipped."""
    return f"Task {task_id} skipped it."
