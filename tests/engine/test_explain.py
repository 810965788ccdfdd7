"""Why a task does not run, in sentences."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app.engine.graph import Graph
from scheduler_app.engine.past import PastFact, Previous
from scheduler_app.engine.readiness import RunFact, Ti, Verdict, explain
from tests.engine.scenario import NOW, dag

RUN = RunFact(NOW)
GRAPH = Graph(dag("a >> c; b >> c"))


def refused(verdicts: list[Verdict]) -> list[tuple[str, str]]:
    return [(verdict.code, verdict.text) for verdict in verdicts if not verdict.ok]


def why(tis: list[Ti], task_id: str = "c", graph: Graph = GRAPH, run: RunFact = RUN, index: int = -1) -> list[Verdict]:
    return explain(graph, tis, task_id, index, run, NOW)


def test_it_names_the_tasks_that_are_waited_for() -> None:
    verdicts = why([Ti(1, "a", state="success"), Ti(2, "b", state="running"), Ti(3, "c")])
    assert [(v.code, v.ok) for v in verdicts] == [("run_state", True), ("state", True), ("trigger_rule", False)]
    assert verdicts[-1].text == "It waits for every upstream to succeed; b (running) has not ended."
    assert verdicts[-1].facts["trigger_rule"] == "all_success"
    assert (verdicts[-1].facts["total"], verdicts[-1].facts["success"]) == (2, 1)


def test_it_says_what_a_rule_made_of_the_upstreams() -> None:
    tis = [Ti(1, "a", state="failed"), Ti(2, "b", state="skipped"), Ti(3, "c")]
    text = "It cannot run: it needs every upstream to succeed (a: failed; b: skipped)."
    assert refused(why(tis)) == [("trigger_rule", text)]


def test_many_names_are_cut() -> None:
    graph = Graph(dag(f"[{', '.join(f't{n}' for n in range(9))}] >> z"))
    tis = [*(Ti(n, f"t{n}", state="running") for n in range(9)), Ti(9, "z")]
    named = ", ".join(f"t{n} (running)" for n in range(5))
    text = f"It waits for every upstream to succeed; {named} and 4 more have not ended."
    assert refused(why(tis, "z", graph)) == [("trigger_rule", text)]


def test_everything_that_stops_the_run_comes_first() -> None:
    run = RunFact(NOW + timedelta(days=1), state="queued", is_paused=True, held=True)
    codes = [code for code, _ in refused(why([Ti(1, "a")], "a", run=run))]
    assert codes == ["run_state", "paused", "run_held", "future"]


def test_a_retry_says_when() -> None:
    waiting = Ti(1, "a", state="up_for_retry", next_at=NOW + timedelta(minutes=5))
    assert refused(why([waiting], "a")) == [
        ("retry", "It waits for its next try at 2024-03-15 00:05:00 UTC. Clear it to try at once.")
    ]
    due = Ti(1, "a", state="up_for_reschedule", next_at=NOW)
    assert refused(why([due], "a")) == []


def test_a_hold_and_the_past_are_named() -> None:
    graph = Graph(dag("a", {"a": {"depends_on_past": True}}))
    previous = Previous("yesterday", NOW - timedelta(days=1), {"a": PastFact(("failed",), (), True)})
    verdicts = explain(graph, [Ti(1, "a", held=True)], "a", -1, RUN, NOW, previous)
    past = "It depends on its past: in the previous run yesterday, "
    past += "1 of its 1 instance did not end in success or skipped. Clear or mark it there."
    assert refused(verdicts) == [
        ("past", past),
        ("held", "Somebody holds this task: release it to let it run."),
    ]


def test_an_ended_or_running_instance_says_so() -> None:
    assert refused(why([Ti(1, "a", state="failed")], "a")) == [
        ("state", "It has ended as failed: clear it to run it again.")
    ]
    verdicts = why([Ti(1, "a", state="running")], "a")
    assert [(v.ok, v.text) for v in verdicts][1:] == [(True, "It is running: its upstreams let it run.")]


def test_an_unexpanded_task_names_what_it_is_mapped_over() -> None:
    mapped = {"style": "expand", "inputs": {"x": {"xcom": "a"}}}
    graph = Graph(dag("a >> m", {"m": {"mapped": mapped}}))
    verdicts = why([Ti(1, "a", state="running"), Ti(2, "m")], "m", graph)
    assert ("mapping", "It is mapped over the results of a, which have not ended.") in refused(verdicts)


def test_a_task_in_a_setups_scope_names_the_setup() -> None:
    graph = Graph(dag("s >> a >> b", {"s": {"is_setup": True}, "b": {"trigger_rule": "all_done"}}))
    verdicts = why([Ti(1, "s", state="failed"), Ti(2, "a", state="failed"), Ti(3, "b")], "b", graph)
    text = "It cannot run: it needs the setups around it to succeed (s: failed)."
    assert refused(verdicts) == [("trigger_rule", text)]


def test_an_unknown_instance_is_an_error_and_a_vanished_task_is_told() -> None:
    with pytest.raises(KeyError, match="no instance 3 of task a"):
        why([Ti(1, "a")], "a", index=3)
    text = "Task gone is no longer part of the DAG: its instance will be removed."
    assert refused(why([Ti(1, "gone")], "gone")) == [("task_removed", text)]
