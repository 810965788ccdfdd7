"""Mapped tasks and mapped groups."""

from __future__ import annotations

import pytest

from scheduler_app.engine.dag import Dag, Group
from scheduler_app.engine.mapping import NO_LENGTH, Source, map_length
from scheduler_app.engine.readiness import Move, RunFact, Ti, look
from tests.engine.scenario import NOW, World, dag, scenario


def over(task_id: str) -> dict[str, object]:
    return {"style": "expand", "inputs": {"x": {"xcom": task_id}}}


def literal(*lengths: int) -> dict[str, object]:
    return {"style": "expand", "inputs": {f"x{n}": {"literal": length} for n, length in enumerate(lengths)}}


def in_group(text: str, mapped: object, inside: list[str], fields: dict[str, dict[str, object]] | None = None) -> Dag:
    groups = [
        Group(None, children=({"group": "g"},)),
        Group("g", children=tuple({"task": name} for name in inside), mapped=mapped),
    ]
    return dag(text, fields, groups)


def test_a_task_mapped_over_a_pushed_list_has_one_instance_for_each_element() -> None:
    played = scenario("names >> greet >> collect", tasks={"greet": {"mapped": over("names")}}, names={"push": 3})
    assert played.states == {
        "names": "success",
        "greet[0]": "success",
        "greet[1]": "success",
        "greet[2]": "success",
        "collect": "success",
    }


def test_a_length_in_the_file_is_expanded_at_once_whatever_the_rule_says() -> None:
    played = scenario("bad >> square", tasks={"square": {"mapped": literal(2, 2)}}, bad="failed")
    assert played.states == {"bad": "failed", **{f"square[{n}]": "upstream_failed" for n in range(4)}}
    assert scenario("bad >> none", tasks={"none": {"mapped": literal(0)}}, bad="failed").states == {
        "bad": "failed",
        "none": "upstream_failed",
    }


def test_a_zero_length_map_is_one_skipped_instance_and_followers_go_by_their_rule() -> None:
    text = "nothing >> work >> [reduce, reduce_all_done, none_failed_child]; static >> after_static"
    fields = {
        "work": {"mapped": over("nothing")},
        "static": {"mapped": literal(0)},
        "reduce_all_done": {"trigger_rule": "all_done"},
        "none_failed_child": {"trigger_rule": "none_failed"},
    }
    played = scenario(text, tasks=fields, nothing={"push": 0})
    assert played.states == {
        "nothing": "success",
        "work": "skipped",
        "reduce": "skipped",
        "reduce_all_done": "success",
        "none_failed_child": "success",
        "static": "skipped",
        "after_static": "skipped",
    }
    assert {ti.map_index for ti in played.tis} == {-1}


def test_a_failed_source_leaves_one_instance_whatever_the_rule() -> None:
    fields = {"work": {"mapped": over("source"), "trigger_rule": "all_done"}}
    assert scenario("source >> work", tasks=fields, source="failed").states["work"] == "upstream_failed"
    assert scenario("source >> work", tasks=fields, source="skipped").states["work"] == "skipped"


def test_a_source_that_pushed_no_list_fails_what_is_mapped_over_it() -> None:
    played = scenario("source >> work", tasks={"work": {"mapped": over("source")}}, source={"push": NO_LENGTH})
    assert played.states == {"source": "success", "work": "upstream_failed"}


def test_a_mapped_task_over_a_mapped_task_has_one_instance_for_each_pushed_value() -> None:
    fields = {"load": {"mapped": literal(3)}, "save": {"mapped": over("load"), "trigger_rule": "all_done"}}
    played = scenario("load >> save", {"load[1]": "failed"}, tasks=fields)
    assert played.states == {
        "load[0]": "success",
        "load[1]": "failed",
        "load[2]": "success",
        "save[0]": "success",
        "save[1]": "success",
    }


def test_in_a_mapped_group_a_failing_index_blocks_only_itself() -> None:
    built = in_group(
        "sources >> load >> [save, audit]; save >> summary",
        over("sources"),
        ["load", "save", "audit"],
        {"audit": {"trigger_rule": "all_done"}, "summary": {"trigger_rule": "all_done"}},
    )
    played = scenario(built, {"load[1]": "failed"}, sources={"push": 3})
    assert played.states == {
        "sources": "success",
        **{f"load[{n}]": "failed" if n == 1 else "success" for n in range(3)},
        **{f"save[{n}]": "upstream_failed" if n == 1 else "success" for n in range(3)},
        **{f"audit[{n}]": "success" for n in range(3)},
        "summary": "success",
    }


def test_in_a_mapped_group_an_index_does_not_wait_for_the_others() -> None:
    built = in_group("load >> save", literal(2), ["load", "save"])
    world = World(built, {})
    world.settle({"load", "save"})
    assert [(ti.task_id, ti.map_index) for ti in world.tis] == [("load", 0), ("save", 0), ("load", 1), ("save", 1)]
    world.attempt(0)
    world.settle({"load"})
    assert [ti.state for ti in world.tis] == ["success", "scheduled", "scheduled", None]


def test_BC_87_what_follows_inside_a_mapped_group_waits_for_its_expansion_and_is_not_skipped_before() -> None:
    rule = {"trigger_rule": "none_failed_min_one_success"}
    built = in_group("sources >> load >> save", over("sources"), ["load", "save"], {"save": rule})
    world = World(built, {})
    world.settle({"sources"})
    assert {ti.task_id: ti.state for ti in world.tis if ti.task_id != "sources"} == {"load": None, "save": None}
    assert scenario(built, sources={"push": 2}).states == {
        "sources": "success",
        **{f"{name}[{n}]": "success" for name in ("load", "save") for n in range(2)},
    }


def test_an_empty_mapped_group_is_skipped_whole() -> None:
    built = in_group(
        "sources >> load >> audit", over("sources"), ["load", "audit"], {"audit": {"trigger_rule": "all_done"}}
    )
    assert scenario(built, sources={"push": 0}).states == {"sources": "success", "load": "skipped", "audit": "skipped"}


def test_groups_inside_each_other_multiply_and_an_outer_index_sees_its_inner_ones() -> None:
    groups = [
        Group(None, children=({"group": "outer"},)),
        Group("outer", children=({"task": "a"}, {"group": "inner"}, {"task": "z"}), mapped=literal(2)),
        Group("inner", children=({"task": "b"},), parent="outer", mapped=literal(3)),
    ]
    played = scenario(dag("a >> b >> z", groups=groups), {"b[4]": "failed", "a[0]": "failed"})
    assert [played.states[f"b[{n}]"] for n in range(6)] == ["upstream_failed"] * 3 + ["success", "failed", "success"]
    assert (played.states["z[0]"], played.states["z[1]"]) == ("upstream_failed", "upstream_failed")


def test_a_cleared_source_that_pushes_less_removes_the_surplus_and_more_adds() -> None:
    graph = World(dag("source >> work", {"work": {"mapped": over("source")}}), {}).graph
    work = [Ti(n, "work", n) for n in range(3)]
    less = look(graph, [Ti(9, "source", state="success", map_length=1), *work], run=RunFact(NOW), now=NOW)
    gone = "What it is mapped over has 1 element(s) now, so there is no index"
    assert less.moves == [Move(1, "remove", f"{gone} 1."), Move(2, "remove", f"{gone} 2."), Move(0, "schedule")]
    more = look(graph, [Ti(9, "source", state="success", map_length=5), *work], run=RunFact(NOW), now=NOW)
    assert more.expand == [("work", 5)]
    assert [move.ti_id for move in more.moves] == [0, 1, 2]


def test_an_instance_without_an_index_beside_expanded_ones_is_removed_whatever_the_rule_says() -> None:
    graph = World(dag("source >> work", {"work": {"mapped": over("source")}}), {}).graph
    tis = [Ti(9, "source", state="failed"), Ti(1, "work", 0, "success"), Ti(2, "work")]
    found = look(graph, tis, run=RunFact(NOW), now=NOW)
    assert [(move.ti_id, move.verb) for move in found.moves] == [(2, "remove")]


@pytest.mark.parametrize(
    ("ref", "length"),
    [
        ({"xcom": "three"}, 3),
        ({"map": {"xcom": "three"}}, 3),
        ({"zip": [{"xcom": "three"}, {"literal": 5}]}, 3),
        ({"zip": [{"xcom": "three"}, {"literal": 5}], "fill": True}, 5),
        ({"concat": [{"xcom": "three"}, {"maplength": 4}]}, 7),
    ],
)
def test_the_length_of_what_is_made_from_results(ref: object, length: int) -> None:
    mapped = {"style": "expand", "inputs": {"x": ref, "y": {"literal": 2}}}
    assert map_length(mapped, lambda _: [Source(-1, "success", 3)]).value == 2 * length


def test_a_length_waits_for_every_source_but_fails_with_the_first() -> None:
    mapped = {"style": "expand", "inputs": {"x": {"xcom": "a"}, "y": {"xcom": "b"}}}
    states = {"a": [Source(-1, "running", None)], "b": [Source(-1, "failed", None)]}
    assert map_length(mapped, states.__getitem__) == (None, "failed", ("b",))
    states["b"] = [Source(-1, "success", 2)]
    assert map_length(mapped, states.__getitem__) == (None, "waiting", ("a",))


def test_an_input_of_unknown_form_says_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"unknown form \(riddle\): parse the DAG file again"):
        map_length({"inputs": {"x": {"riddle": 1}}}, lambda _: [])
