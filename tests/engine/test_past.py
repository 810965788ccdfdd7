"""depends_on_past and wait_for_downstream."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app.engine.past import PastFact, Previous
from scheduler_app.engine.readiness import Move, RunFact, Ti, look
from tests.engine.scenario import NOW, World, dag

PAST = {"depends_on_past": True}


def moves(fields: dict[str, object], previous: Previous | None, **run: bool) -> list[Move]:
    graph = World(dag("a", {"a": fields}), {}).graph
    return look(graph, [Ti(1, "a")], run=RunFact(NOW, **run), now=NOW, previous=previous).moves


def before(*states: str | None, ever: bool = True, downstream: tuple[str | None, ...] = ()) -> Previous:
    return Previous("earlier", NOW - timedelta(days=1), {"a": PastFact(states, downstream, ever)})


@pytest.mark.parametrize("state", ["success", "skipped"])
def test_a_success_or_skip_before_lets_it_run(state: str) -> None:
    assert moves(PAST, before(state)) == [Move(1, "schedule")]


@pytest.mark.parametrize("state", ["failed", "upstream_failed", "running", None])
def test_anything_else_before_holds_it(state: str | None) -> None:
    assert moves(PAST, before("success", state)) == []


def test_the_first_run_has_no_past() -> None:
    assert moves(PAST, None) == [Move(1, "schedule")]


def test_a_task_that_is_new_in_the_dag_runs_only_if_told_to_ignore_that() -> None:
    assert moves(PAST, before(ever=False)) == []
    assert moves({**PAST, "ignore_first_depends_on_past": True}, before(ever=False)) == [Move(1, "schedule")]
    assert moves({**PAST, "ignore_first_depends_on_past": True}, before(ever=True)) == []


def test_wait_for_downstream_asks_the_followers_too() -> None:
    waits = {**PAST, "wait_for_downstream": True}
    assert moves(waits, before("success", downstream=("success", "skipped"))) == [Move(1, "schedule")]
    assert moves(waits, before("success", downstream=("success", "running"))) == []
    assert moves(PAST, before("success", downstream=("running",))) == [Move(1, "schedule")]


def test_with_catchup_a_run_before_the_tasks_own_start_does_not_count() -> None:
    fields = {**PAST, "start_date": NOW.isoformat()}
    assert moves(fields, before("failed")._replace(catchup=True)) == [Move(1, "schedule")]
    assert moves(fields, before("failed")) == []


def test_a_run_that_ignores_the_past_goes_on() -> None:
    assert moves(PAST, before("failed"), ignore_past=True) == [Move(1, "schedule")]


def test_BC_89_a_skip_waits_for_the_past_where_the_task_says_so() -> None:
    for waits, expected in ((False, [(2, "skip")]), (True, [])):
        fields = {**PAST, "wait_for_past_depends_before_skipping": waits}
        graph = World(dag("b >> a", {"a": fields}), {}).graph
        tis = [Ti(1, "b", state="skipped"), Ti(2, "a")]
        found = look(graph, tis, run=RunFact(NOW), now=NOW, previous=before("failed"))
        assert [(move.ti_id, move.verb) for move in found.moves] == expected


def test_a_wait_for_the_past_is_no_deadlock() -> None:
    world = World(dag("a", {"a": PAST}), {}, before("running"))
    assert world.play().run.code == "unfinished"
