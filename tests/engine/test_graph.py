"""The compiled graph."""

from __future__ import annotations

import pytest

from scheduler_app.engine.dag import Dag, Group, Task
from scheduler_app.engine.graph import WEIGHT_MAX, WEIGHT_MIN, Graph
from tests.engine.scenario import dag

DIAMOND = Graph(dag("a >> [b, c] >> d; x"))


def test_the_order_is_topological_and_edges_go_both_ways() -> None:
    assert DIAMOND.order == ("a", "x", "b", "c", "d")
    assert DIAMOND.upstream == {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c"), "x": ()}
    assert DIAMOND.downstream["a"] == ("b", "c")
    assert (DIAMOND.roots, DIAMOND.leaves) == (("a", "x"), ("d", "x"))


def test_a_cycle_is_named() -> None:
    with pytest.raises(ValueError, match=r"has a cycle: b -> c -> d -> b\. Remove one"):
        Graph(dag("a >> b >> c >> d >> b; d >> e"))


def test_an_edge_to_an_unknown_task_is_named() -> None:
    with pytest.raises(ValueError, match="Task 'a' names 'b' as downstream"):
        Graph(Dag("d", tasks=(Task("a", downstream=("b",)),)))


def test_weights_as_each_rule_makes_them() -> None:
    for rule, weights in {
        "downstream": (112, 11, 101, 1),
        "upstream": (1, 11, 101, 112),
        "absolute": (1, 10, 100, 1),
    }.items():
        fields = {
            name: {"weight_rule": rule, "priority_weight": w} for name, w in zip("abcd", (1, 10, 100, 1), strict=True)
        }
        assert tuple(Graph(dag("a >> [b, c] >> d", fields)).weights.values()) == weights
    assert Graph(dag("a", {"a": {"weight_rule": "custom", "weight": 7, "priority_weight": 3}})).weights == {"a": 7}


def test_weights_stay_inside_the_column() -> None:
    big = {"priority_weight": WEIGHT_MAX}
    assert Graph(dag("a >> b", {"a": big, "b": big})).weights == {"a": WEIGHT_MAX, "b": WEIGHT_MAX}
    small = {"priority_weight": WEIGHT_MIN}
    assert Graph(dag("a >> b", {"a": small, "b": small})).weights["a"] == WEIGHT_MIN


def test_relatives_include_the_tasks_themselves() -> None:
    assert DIAMOND.relatives(["b"]) == {"b"}
    assert DIAMOND.relatives(["b"], upstream=True) == {"a", "b"}
    assert DIAMOND.relatives(["b"], downstream=True) == {"b", "d"}
    assert DIAMOND.relatives(["b"], upstream=True, downstream=True) == {"a", "b", "d"}


def test_the_neighbourhood_is_the_followers_and_what_those_need() -> None:
    near = Graph(dag("a >> [b, c] >> d; " + "; ".join(f"x{n}" for n in range(20)))).neighbourhood(["b", "unknown"])
    assert near.look_at == {"b", "d"}
    assert near.load == {"a", "b", "c", "d"}
    assert not near.wide
    assert DIAMOND.neighbourhood(["b"]).wide


def test_setups_and_teardowns_are_paired_by_their_direct_edge() -> None:
    fields = {"s": {"is_setup": True}, "t": {"is_teardown": True}}
    graph = Graph(dag("s >> a >> b >> t >> after; s >> t", fields))
    assert (graph.setups_of["t"], graph.teardowns_of["s"], graph.setups_of["a"]) == (("s",), ("t",), ())
    # b is in the scope; a has the setup as direct upstream; after lies behind the teardown
    assert graph.scope_setups == {"b": ("s",)}
    assert graph.followers["s"] == ("a", "b", "t")


def test_leaves_do_without_teardowns_unless_there_is_nothing_else() -> None:
    assert Graph(dag("a >> t", {"t": {"is_teardown": True}})).leaves == ("a",)
    assert Graph(dag("a >> t", {"t": {"is_teardown": True, "on_failure_fail_dagrun": True}})).leaves == ("t",)
    assert Graph(dag("t", {"t": {"is_teardown": True}})).leaves == ("t",)


def test_a_task_knows_its_group_and_the_mapped_ones_around_it() -> None:
    mapped = {"style": "expand", "inputs": {"x": {"xcom": "source"}}}
    groups = [
        Group(None, children=({"task": "source"}, {"group": "outer"})),
        Group("outer", children=({"group": "outer.inner"},), mapped=mapped),
        Group("outer.inner", children=({"task": "a"}, {"task": "b"}), parent="outer"),
    ]
    graph = Graph(dag("source >> a >> b", groups=groups))
    assert (graph.group_of["a"], graph.group_of["source"]) == ("outer.inner", None)
    assert graph.mapped_ancestor("b") is graph.groups["outer"]
    assert graph.mapped_ancestor("source") is None
    # b is not a direct follower of the source, but gets its instances from it
    assert graph.followers["source"] == ("a", "b")
