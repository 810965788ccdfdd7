"""DAGs from a line of text: ``shape("extract >> [clean, check] >> load")``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Any

from scheduler_app.engine.dag import Dag, Group, Task

_WORD = re.compile(r"[\w.\-]+")


def shape(text: str, dag_id: str = "dag", tasks: Mapping[str, Mapping[str, Any]] | None = None, **fields: Any) -> Dag:
    """The DAG of a text: chains with ``>>``, lists in brackets, several chains separated by ``;`` or newlines.

    ``tasks`` gives fields of single tasks ("*" = of all), ``fields`` those of the DAG.
    """
    edges: dict[str, list[str]] = {}
    for chain in re.split(r"[;\n]", text):
        links = [_WORD.findall(link) for link in chain.split(">>")]
        for link in links:
            for task_id in link:
                edges.setdefault(task_id, [])
        for above, below in itertools.pairwise(links):
            for task_id in above:
                edges[task_id] += [other for other in below if other not in edges[task_id]]
    given = tasks or {}
    made = tuple(
        Task(task_id, downstream=tuple(after), **{**given.get("*", {}), **given.get(task_id, {})})
        for task_id, after in edges.items()
    )
    root = Group(None, children=tuple({"task": task.task_id} for task in made))
    return Dag(dag_id, tasks=made, groups=fields.pop("groups", (root,)), **fields)


def wide(width: int, dag_id: str = "wide", **fields: Any) -> Dag:
    """1 → width → 1."""
    names = ", ".join(f"w{n}" for n in range(width))
    return shape(f"first >> [{names}] >> last", dag_id, **fields)


def chain(length: int, dag_id: str = "chain", **fields: Any) -> Dag:
    return shape(" >> ".join(f"t{n}" for n in range(length)), dag_id, **fields)


def parallel(width: int, dag_id: str = "parallel", **fields: Any) -> Dag:
    return shape("; ".join(f"p{n}" for n in range(width)), dag_id, **fields)
