"""What a branch skips, and which instances a run has."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app.engine.dag import Group
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.instances import Changes, changes, instances
from scheduler_app.engine.readiness import Ti
from scheduler_app.engine.skips import skips_after
from scheduler_app.engine.states import TASK_STATES
from tests.engine.scenario import NOW, dag

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


def test_a_new_run_has_what_the_file_knows() -> None:
    graph = Graph(dag("source >> [over, lit, none]", {"lit": {"mapped": TWO}, "none": {"mapped": mapped(0)}}))
    assert instances(graph, NOW) == [("source", -1), ("over", -1), ("lit", 0), ("lit", 1), ("none", -1)]
    assert instances(Graph(dag("pick >> arm", groups=GROUPS)), NOW) == [(t, n) for t in ("pick", "arm") for n in (0, 1)]


def mapped(length: int) -> dict[str, object]:
    return {"style": "expand", "inputs": {"x": {"literal": length}}}


def test_a_run_without_a_logical_date_has_every_task() -> None:
    graph = Graph(dag("a", {"a": {"start_date": (NOW + timedelta(days=1)).isoformat()}}))
    assert instances(graph, NOW) == []
    assert instances(graph, None) == [("a", -1)]


def test_a_new_version_adds_and_restores() -> None:
    graph = Graph(dag("a; b; back"))
    tis = [Ti(1, "a", state="success"), Ti(2, "back", state="removed"), Ti(3, "gone")]
    assert changes(graph, tis, NOW) == Changes([("b", -1)], [2])


def test_an_index_that_was_removed_because_the_list_became_shorter_stays_removed() -> None:
    graph = Graph(dag("a", {"a": {"mapped": TWO}}))
    assert changes(graph, [Ti(1, "a", 0), Ti(2, "a", 5, "removed")], NOW) == Changes([], [])
