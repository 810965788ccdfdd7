"""Edges in bulk and with labels: ``Label``, ``chain``, ``chain_linear``, ``cross_downstream``."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from scheduler_app.sdk.node import Linkable, as_linkables


class EdgeModifier(Linkable):
    """Stands between two ends of an edge (``a >> Label("yes") >> b``) and labels it once both are known."""

    def __init__(self, label: str | None = None) -> None:
        self.label = label
        self._upstream: list[Any] = []
        self._downstream: list[Any] = []

    @property
    def roots(self) -> list[Any]:
        return [root for node in self._downstream for root in node.roots]

    @property
    def leaves(self) -> list[Any]:
        return [leaf for node in self._upstream for leaf in node.leaves]

    def set_upstream(self, other: Any, edge_modifier: Any = None) -> None:
        for node in as_linkables(other):
            self._upstream.append(node)
            for below in self._downstream:
                node.set_downstream(below, edge_modifier=self)

    def set_downstream(self, other: Any, edge_modifier: Any = None) -> None:
        for node in as_linkables(other):
            self._downstream.append(node)
            for above in self._upstream:
                node.set_upstream(above, edge_modifier=self)

    def take(self, node: Any, *, upstream: bool) -> None:
        """``node`` was connected to this label; ``upstream``: the label stands before the node."""
        if upstream:
            self.set_downstream(node)
        else:
            self.set_upstream(node)

    def label_edge(self, dag: Any, upstream_id: str, downstream_id: str) -> None:
        if self.label:
            dag.set_edge_info(upstream_id, downstream_id, {"label": self.label})


def Label(label: str) -> EdgeModifier:
    """A label for the edge it stands on."""
    return EdgeModifier(label=label)


def chain(*tasks: Any) -> None:
    """Connects each item with the next. Two lists side by side are connected pairwise and must be of one length."""
    for above, below in itertools.pairwise(tasks):
        if not isinstance(above, (list, tuple)):
            if isinstance(below, (list, tuple, Linkable)):
                above.set_downstream(below)
                continue
            raise TypeError(f"chain() takes tasks, groups and lists of them; got {below!r}.")
        if not isinstance(below, (list, tuple)):
            below.set_upstream(list(above))
            continue
        if len(above) != len(below):
            raise ValueError(
                f"chain() connects two neighbouring lists pairwise, but they have {len(above)} and {len(below)} items: "
                "make them equal, or use chain_linear() or cross_downstream()."
            )
        for first, second in zip(above, below, strict=True):
            first.set_downstream(second)


def chain_linear(*elements: Any) -> None:
    """Connects everything in each item with everything in the next. Raises ValueError for fewer than two items."""
    kept = [as_linkables(element) for element in elements]
    kept = [nodes for nodes in kept if nodes]
    if len(kept) < 2:
        raise ValueError(f"chain_linear() connects neighbours and needs two non-empty items or more; got {len(kept)}.")
    for above, below in itertools.pairwise(kept):
        cross_downstream(above, below)


def cross_downstream(from_tasks: Iterable[Any], to_tasks: Any) -> None:
    """Each of ``from_tasks`` comes before each of ``to_tasks``."""
    for task in from_tasks:
        task.set_downstream(list(to_tasks) if isinstance(to_tasks, (list, tuple)) else to_tasks)
