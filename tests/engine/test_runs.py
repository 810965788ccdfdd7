"""Whole runs: skips, branches, setups and teardowns, retries, the run's own end."""

from __future__ import annotations

from datetime import timedelta

from scheduler_app.engine.outcome import deadlock, fail_fast_moves, outcome
from scheduler_app.engine.readiness import Move, RunFact, Ti, look
from scheduler_app.engine.task_dates import task_ids_at
from tests.engine.scenario import NOW, World, dag, scenario

EMPTY = {"is_empty": True}


def test_a_failure_blocks_what_comes_after_it_and_nothing_else() -> None:
    played = scenario("extract >> [clean, check] >> load", clean="failed")
    assert played.states == {"extract": "success", "clean": "failed", "check": "success", "load": "upstream_failed"}
    assert (played.run.state, played.run.code) == ("failed", "task_failure")
    assert played.run.reason == "Of its last tasks these did not succeed: load."


def test_tasks_that_never_ran_have_no_try_and_empty_ones_have_one() -> None:
    played = scenario("a >> b >> c", tasks={"a": EMPTY}, b="failed")
    assert played.tries == {"a": 1, "b": 1, "c": 0}


def test_a_skip_goes_down_by_default_rules_and_uses_no_retry() -> None:
    text = "skipping >> child >> grandchild; [skipping, working] >> both; [skipping, working] >> both_none_failed"
    text += "; [grandchild, working] >> deep_all_done"
    fields = {"both_none_failed": {"trigger_rule": "none_failed"}, "deep_all_done": {"trigger_rule": "all_done"}}
    played = scenario(text, tasks=fields | {"skipping": {"retries": 2}}, skipping="skipped")
    assert played.states == {
        "skipping": "skipped",
        "child": "skipped",
        "grandchild": "skipped",
        "working": "success",
        "both": "skipped",
        "both_none_failed": "success",
        "deep_all_done": "success",
    }
    assert played.tries["skipping"] == 1
    assert played.run.state == "success"


def test_a_branch_leaves_one_arm_and_joins_by_its_rule() -> None:
    text = "pick >> arm_a >> tail_a >> [join, strict]; pick >> arm_b >> tail_b >> [join, strict]"
    played = scenario(text, tasks={"join": {"trigger_rule": "none_failed_min_one_success"}}, pick={"skip": ["arm_a"]})
    assert played.states == {
        "pick": "success",
        "arm_a": "skipped",
        "tail_a": "skipped",
        "arm_b": "success",
        "tail_b": "success",
        "join": "success",
        "strict": "skipped",
    }


def test_a_short_circuit_overrides_every_rule_below_it() -> None:
    played = scenario("gate >> a >> b >> c", tasks={"c": {"trigger_rule": "all_done"}}, gate={"skip": ["a", "b", "c"]})
    assert played.states == {"gate": "success", "a": "skipped", "b": "skipped", "c": "skipped"}
    assert played.run.state == "success"


def test_a_branch_never_skips_what_runs_already() -> None:
    world = World(dag("pick >> early", {"early": {"trigger_rule": "always"}}), {})
    world.settle({"pick", "early"})
    world.move(1, "queue")
    world.move(1, "start")
    world.move(0, "queue")
    world.move(0, "start")
    world.succeed(0, {"skip": ["early"]})
    assert [ti.state for ti in world.tis] == ["success", "running"]


def test_a_teardown_runs_after_failed_work_and_the_work_decides_the_run() -> None:
    fields = {
        "create": {"is_setup": True},
        "delete": {"is_teardown": True, "trigger_rule": "all_done_setup_success"},
    }
    text = "create >> w1 >> w2 >> w3 >> delete >> after_teardown; create >> delete"
    played = scenario(text, tasks=fields, w2="failed")
    assert played.states == {
        "create": "success",
        "w1": "success",
        "w2": "failed",
        "w3": "upstream_failed",
        "delete": "success",
        "after_teardown": "success",
    }
    assert played.run.state == "failed"


def test_a_failed_teardown_is_ignored_unless_it_asks_to_count() -> None:
    teardown = {"is_teardown": True, "trigger_rule": "all_done_setup_success"}
    text = "up >> work >> down; up >> down"
    quiet = scenario(text, tasks={"up": {"is_setup": True}, "down": teardown}, down="failed")
    assert quiet.run.state == "success"
    loud = scenario(
        text, tasks={"up": {"is_setup": True}, "down": teardown | {"on_failure_fail_dagrun": True}}, down="failed"
    )
    assert loud.run.state == "failed"


def test_a_teardown_does_not_run_when_no_setup_succeeded() -> None:
    fields = {"up": {"is_setup": True}, "down": {"is_teardown": True, "trigger_rule": "all_done_setup_success"}}
    failed = scenario("up >> work >> down; up >> down", tasks=fields, up="failed")
    assert failed.states == {"up": "failed", "work": "upstream_failed", "down": "upstream_failed"}
    skipped = scenario("up >> work >> down; up >> down", tasks=fields, up="skipped")
    assert skipped.states == {"up": "skipped", "work": "skipped", "down": "skipped"}


def test_a_task_inside_a_setups_scope_needs_it_whatever_its_rule() -> None:
    fields = {
        "up": {"is_setup": True},
        "late": {"trigger_rule": "all_done"},
        "down": {"is_teardown": True, "trigger_rule": "all_done_setup_success"},
        "outside": {"trigger_rule": "all_done"},
    }
    played = scenario("up >> early >> late >> down >> outside; up >> down", tasks=fields, up="failed")
    assert played.states["late"] == "upstream_failed"
    assert played.states["outside"] == "success"


def test_a_failure_midway_can_end_as_success() -> None:
    played = scenario("start >> [bad, good] >> leaf", tasks={"leaf": {"trigger_rule": "all_done"}}, bad="failed")
    assert played.run.state == "success"


def test_any_failed_task_decides_where_the_setting_says_so() -> None:
    played = scenario("start >> [bad, good] >> leaf", tasks={"leaf": {"trigger_rule": "all_done"}}, bad="failed")
    pairs = [(ti.task_id, ti.state) for ti in played.tis]
    ended = outcome(played.graph, pairs, rule="any_failed")
    assert (ended.state, ended.reason) == ("failed", "Of its tasks these did not succeed: bad.")


def test_the_outcome_of_leaves_alone_equals_that_of_all() -> None:
    played = scenario("a >> [b, c]", b="failed")
    leaves = [(ti.task_id, ti.state) for ti in played.tis if ti.task_id in played.graph.leaves]
    assert outcome(played.graph, leaves, all_ended=True) == outcome(
        played.graph, [(ti.task_id, ti.state) for ti in played.tis]
    )
    assert outcome(played.graph, leaves, all_ended=False).state is None


def test_a_run_without_instances_succeeds() -> None:
    assert outcome(World(dag("a"), {}).graph, []).state == "success"


def test_retries_are_used_one_by_one() -> None:
    played = scenario("a >> b", tasks={"a": {"retries": 2}}, a=["failed", "failed", "success"])
    assert played.states == {"a": "success", "b": "success"}
    assert played.tries == {"a": 3, "b": 1}
    assert scenario("a", tasks={"a": {"retries": 2}}, a="failed").tries == {"a": 3}


def test_a_retry_waits_for_its_time() -> None:
    graph = World(dag("a", {"a": {"retries": 1}}), {}).graph
    at = NOW + timedelta(minutes=5)
    early = look(graph, [Ti(1, "a", state="up_for_retry", next_at=at)], run=RunFact(NOW), now=NOW)
    assert (early.moves, early.next_check_at, early.waiting) == ([], at, {"retry": 1})
    due = look(graph, [Ti(1, "a", state="up_for_retry", next_at=at)], run=RunFact(NOW), now=at)
    assert due.moves == [Move(1, "schedule")]


def test_a_run_of_the_future_executes_nothing_before() -> None:
    graph = World(dag("a"), {}).graph
    run = RunFact(NOW + timedelta(days=1))
    found = look(graph, [Ti(1, "a")], run=run, now=NOW)
    assert (found.moves, found.next_check_at) == ([], NOW + timedelta(days=1))
    assert look(graph, [Ti(1, "a")], run=run._replace(allow_future=True), now=NOW).moves == [Move(1, "schedule")]


def test_a_held_task_waits_and_an_unheld_one_does_not() -> None:
    graph = World(dag("a"), {}).graph
    found = look(graph, [Ti(1, "a", held=True)], run=RunFact(NOW), now=NOW)
    assert (found.moves, found.waiting) == ([], {"held": 1})


def test_an_instance_whose_task_left_is_removed_before_it_begins_and_may_end_after() -> None:
    graph = World(dag("a"), {}).graph
    tis = [Ti(1, "a", state="success"), Ti(2, "gone"), Ti(3, "gone", state="running")]
    found = look(graph, tis, run=RunFact(NOW), now=NOW)
    assert found.moves == [Move(2, "remove", "Task gone is no longer part of the DAG.")]


def test_a_deleted_instance_ends_the_run_with_a_reason_instead_of_stranding_it() -> None:
    world = World(dag("a >> b >> c"), {})
    del world.tis[1]
    played = world.play()
    assert played.states == {"a": "success", "c": None}
    assert played.run.code == "all_tasks_deadlocked"
    assert played.run.reason == (
        "Nothing can run any more, and c never will. The run has no instance of b, which they wait for."
    )


def test_a_look_that_only_ends_instances_may_find_the_deadlock_at_once() -> None:
    graph = World(dag("a >> b >> c; x >> y"), {}).graph
    tis = [Ti(1, "a", state="success"), Ti(3, "c"), Ti(4, "x", state="failed"), Ti(5, "y", state="up_for_retry")]
    found = look(graph, tis, run=RunFact(NOW), now=NOW)
    assert [(move.ti_id, move.verb) for move in found.moves] == [(5, "upstream_fail")]
    ended = deadlock(graph, tis, found)
    assert ended is not None
    assert ended.code == "all_tasks_deadlocked"
    assert deadlock(graph, [*tis, Ti(6, "a", state="running")], found) is None


def test_a_full_look_sends_nobody_on() -> None:
    graph = World(dag("a >> b >> c"), {}).graph
    tis = [Ti(1, "a", state="failed"), Ti(2, "b"), Ti(3, "c")]
    assert look(graph, tis, run=RunFact(NOW), now=NOW).touched == set()
    assert look(graph, tis[:2], run=RunFact(NOW), now=NOW, only={"b"}).touched == {"b"}


def test_fail_fast_ends_the_rest_but_not_teardowns() -> None:
    world = World(dag("a; b; c; d >> t", {"t": {"is_teardown": True}}, fail_fast=True), {})
    tis = [Ti(1, "a", state="failed"), Ti(2, "b", state="running"), Ti(3, "c"), Ti(4, "d", state="success"), Ti(5, "t")]
    why = "The DAG fails fast, and task a failed."
    assert fail_fast_moves(world.graph, tis, "a") == [Move(2, "fail", why), Move(3, "skip", why)]
    assert fail_fast_moves(world.graph, tis, "t") == []


def test_tasks_outside_their_dates_have_no_instance() -> None:
    fields = {
        "late": {"start_date": (NOW + timedelta(days=1)).isoformat()},
        "over": {"end_date": (NOW - timedelta(days=1)).isoformat()},
        "last": {"end_date": NOW.isoformat()},
    }
    assert scenario("a; late; over; last", tasks=fields).states == {"a": "success", "last": "success"}


def test_a_run_without_a_logical_date_has_every_task() -> None:
    graph = World(dag("a", {"a": {"start_date": (NOW + timedelta(days=1)).isoformat()}}), {}).graph
    assert (task_ids_at(graph, NOW), task_ids_at(graph, None)) == ((), ("a",))
