"""What a branch may skip."""

from __future__ import annotations

import pytest

from scheduler_app.engine.dag import Group
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.readiness import Ti
from scheduler_app.engine.skips import skips_after
from scheduler_app.engine.states import TASK_STATES
from tests.engine.scenario import dag

TWO = {"style": "expand", "inputs": {"x": {"literal": 2}}}
GROUPS = [Group(None, children=({"group": "g"},)), Group("g", children=({"task": "pick"}, {"task": "arm"}), mapped=TWO)]


@pytest.mark.parametrize("state", TASK_STATES)
def test_only_what_has_not_begun_is_skipped(state: str | None) -> None:
    graph = Graph(dag("pick >> arm"))
    moves = skips_after(graph, "pick", ["arm"], [Ti(1, "arm", state=state)])
    begins = state in (None, "scheduled", "up_for_retry", "up_for_reschedule")
    assert [(move.verb, move.reason) for move in moves] == ([("skip", "Task pick skipped it.")] if begins else [])


def test_a_branch_in_a_mapped_group_skips_its_own_index() -> None:
    graph = Graph(dag("pick >> [arm, outside]", groups=GROUPS))
    tis = [Ti(1, "arm", 0), Ti(2, "arm", 1), Ti(3, "outside")]
    moves = skips_after(graph, "pick", ["arm", "outside", "unknown"], tis, map_index=1)
    assert [move.ti_id for move in moves] == [2, 3]


def test_single_indexes_may_be_named() -> None:
    graph = Graph(dag("pick >> arm", {"arm": {"mapped": TWO}}))
    tis = [Ti(1, "arm", 0), Ti(2, "arm", 1), Ti(3, "arm", 2)]
    moves = skips_after(graph, "pick", [["arm", 0], ["arm", 2]], tis)
    assert [move.ti_id for move in moves] == [1, 3]
