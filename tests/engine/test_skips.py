"""What a branch may skip."""

from __future__ import annotations

import pytest

from scheduler_app.engine.dag import Group
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.readiness import RunFact, Ti, explain, look
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


def branched(*skip: object, **fields: object) -> list[Ti]:
    """``pick >> [arm, other] >> join`` after the branch skipped some, of which ``arm`` was cleared."""
    return [
        Ti(0, "pick", state="success", skips=skip),
        Ti(1, "arm", **fields),
        Ti(2, "other", state="success"),
        Ti(3, "join", state="success"),
    ]


def again(tis: list[Ti]) -> list[tuple[object, str]]:
    graph = Graph(dag("pick >> [arm, other] >> join", {"pick": {"can_skip_downstream": True}}))
    found = look(graph, tis, run=RunFact(), now=NOW)
    return [(move.ti_id, move.verb) for move in found.moves]


def test_a_follower_that_is_cleared_without_its_branch_is_skipped_again() -> None:
    assert again(branched("arm")) == [(1, "skip")]
    assert again(branched(["arm", -1])) == [(1, "skip")]


def test_a_follower_that_the_branch_did_not_name_runs_again() -> None:
    assert again(branched("join")) == [(1, "schedule")]


def test_a_branch_that_is_cleared_too_decides_anew() -> None:
    tis = [Ti(0, "pick"), *branched("arm")[1:]]
    assert again(tis) == [(0, "schedule")]


def test_why_it_does_not_run_names_the_branch() -> None:
    graph = Graph(dag("pick >> [arm, other] >> join", {"pick": {"can_skip_downstream": True}}))
    verdicts = explain(graph, branched("arm"), "arm", -1, RunFact(), NOW)
    refused = [verdict for verdict in verdicts if not verdict.ok]
    assert [(verdict.code, verdict.facts) for verdict in refused] == [("branch", {"task": "pick"})]


def test_instances_of_a_mapped_branch_skip_their_own_indexes_again() -> None:
    graph = Graph(dag("pick >> arm", {"pick": {"can_skip_downstream": True}}, groups=GROUPS))
    picks = [Ti(0, "pick", 0, state="success", skips=[["arm", 0]]), Ti(1, "pick", 1, state="success")]
    found = look(graph, [*picks, Ti(2, "arm", 0), Ti(3, "arm", 1)], run=RunFact(), now=NOW)
    assert [(move.ti_id, move.verb) for move in found.moves] == [(2, "skip"), (3, "schedule")]
