"""The graphs that a process keeps: a bounded number, the ones that were used last."""

from __future__ import annotations

from uuid import UUID

import pytest

from scheduler_app.engine.graph import Graph
from scheduler_app.models import graphs
from tests.shapes import shape


@pytest.mark.django_db
def test_S_68_the_graph_that_was_used_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "CACHE_SIZE", 2)
    graphs.forget()
    graph = Graph(shape("a"))
    one, two, three = (UUID(int=number) for number in (1, 2, 3))
    graphs.remember(one, graph)
    graphs.remember(two, graph)
    assert graphs.graphs_of([one]) == {one: graph}
    graphs.remember(three, graph)
    assert graphs.graphs_of([one, two, three]) == {one: graph, three: graph}
