"""The placing of a graph: pure, no database."""

from __future__ import annotations

import random
from itertools import combinations

from scheduler_app.ui import layout
from scheduler_app.ui.layout import Box, Picture

SIZE = (100.0, 38.0)


def placed(edges: str, groups: dict[str, str] | None = None) -> Picture:
    """The picture of edges written as ``a>b b>c``; ``groups`` maps a task or group to the group around it."""
    pairs = [tuple(edge.split(">")) for edge in edges.split()]
    nodes = dict.fromkeys(node for pair in pairs for node in pair)
    parents = {node: (groups or {}).get(node) for node in nodes} | dict(groups or {})
    return layout.arrange(dict.fromkeys(nodes, SIZE), parents, pairs)


def box(picture: Picture, name: str) -> Box:
    return next(one for one in picture.boxes if one.id == name)


def overlap(one: Box, other: Box) -> bool:
    return (
        one.x < other.x + other.width
        and other.x < one.x + one.width
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


def test_a_chain_runs_from_left_to_right_at_one_height() -> None:
    picture = placed("a>b b>c")
    assert [box(picture, name).x for name in "abc"] == [14.0, 168.0, 322.0]
    assert {box(picture, name).y for name in "abc"} == {14.0}
    assert (picture.width, picture.height) == (436.0, 66.0)


def test_a_diamond_is_symmetric() -> None:
    picture = placed("a>b a>c b>d c>d")
    tops = {name: box(picture, name).y for name in "abcd"}
    assert tops["b"] == 14.0
    assert tops["c"] == 66.0
    assert tops["a"] == tops["d"] == 40.0


def test_an_edge_that_spans_layers_passes_behind_no_box() -> None:
    picture = placed("a>b b>c c>d a>d")
    wire = next(one for one in picture.wires if (one.source, one.target) == ("a", "d"))
    for name in "bc":
        middle = box(picture, name)
        beside = [y for x, y in wire.points if middle.x <= x <= middle.x + middle.width]
        assert len(beside) == 2
        assert all(not middle.y < y < middle.y + middle.height for y in beside)


def test_crossings_that_can_be_avoided_are() -> None:
    picture = placed("a>y b>x c>z a>x2 x2>q")
    left = sorted("abc", key=lambda name: box(picture, name).y)
    follows = {"a": "y", "b": "x", "c": "z"}
    right = [follows[name] for name in left]
    assert right == sorted(right, key=lambda name: box(picture, name).y)


def test_a_group_holds_its_members_and_nobody_else() -> None:
    picture = placed("a>g.x g.x>g.y g.y>b a>b", {"g.x": "g", "g.y": "g"})
    group = box(picture, "g")
    assert group.is_group
    for name in ("g.x", "g.y"):
        inside = box(picture, name)
        assert group.x < inside.x
        assert inside.x + inside.width < group.x + group.width
        assert group.y < inside.y
        assert inside.y + inside.height < group.y + group.height
    assert not overlap(group, box(picture, "a"))
    assert not overlap(group, box(picture, "b"))


def test_an_edge_into_a_group_meets_the_border_where_its_inner_piece_starts() -> None:
    picture = placed("a>g.x g.x>g.y", {"g.x": "g", "g.y": "g"})
    wire = next(one for one in picture.wires if one.source == "a")
    assert (box(picture, "g").x) in [x for x, _ in wire.points]
    assert wire.points[0] == (114.0, box(picture, "a").y + 19.0)
    assert wire.points[-1] == (box(picture, "g.x").x, box(picture, "g.x").y + 19.0)


def test_nested_groups_have_depths() -> None:
    picture = placed("a>o.i.x", {"o.i.x": "o.i", "o.i": "o"})
    assert [(one.id, one.depth) for one in picture.boxes] == [("o", 0), ("o.i", 1), ("a", 0), ("o.i.x", 2)]


def test_groups_that_wait_for_each_other_are_still_placed() -> None:
    picture = placed("g.a>h.a h.b>g.b", {"g.a": "g", "g.b": "g", "h.a": "h", "h.b": "h"})
    assert not overlap(box(picture, "g"), box(picture, "h"))
    assert len(picture.wires) == 2


def test_many_edges_between_two_groups_are_drawn_as_one() -> None:
    tasks = {f"{group}.{n}": group for group in "gh" for n in range(4)}
    edges = " ".join(f"g.{a}>h.{b}" for a in range(4) for b in range(4))
    picture = placed(edges, tasks)
    assert [(wire.source, wire.target) for wire in picture.wires] == [("g", "h")]


def test_no_two_boxes_overlap_in_graphs_made_by_chance() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        names = [f"t{n}" for n in range(30)]
        groups = {name: f"g{n // 6}" for n, name in enumerate(names) if rng.random() < 0.8}
        edges = {(names[a], names[b]) for a, b in (sorted(rng.sample(range(30), 2)) for _ in range(40))}
        parents = {name: groups.get(name) for name in names}
        picture = layout.arrange(dict.fromkeys(names, SIZE), parents, sorted(edges))
        assert len(picture.boxes) == 30 + len(set(groups.values()))
        for one, other in combinations(picture.boxes, 2):
            related = one.id == parents.get(other.id) or other.id == parents.get(one.id)
            assert related or not overlap(one, other), (seed, one, other)
        assert all(
            b.x >= 0 and b.x + b.width <= picture.width and b.y + b.height <= picture.height for b in picture.boxes
        )


def test_the_same_graph_gives_the_same_picture() -> None:
    assert placed("a>b a>c c>d") == placed("a>b a>c c>d")


def test_a_graph_without_nodes_is_empty() -> None:
    assert layout.arrange({}, {}, []).boxes == ()
