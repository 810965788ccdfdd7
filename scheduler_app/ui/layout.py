"""Places the nodes of a graph with nested groups, left to right. Pure: sizes and edges in, coordinates out.

Each open group is laid out on its own, then stands as one box in the group around it. An edge that crosses a group's
border gets a *port*: a node without height in the first or last layer of that group, so that it takes part in the
ordering inside, and the pieces of its route meet at the border. Within one level this is the usual layered way: cut
cycles, longest-path layers, stand-ins where an edge spans layers, barycentre sweeps, then heights by least squares.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

GAP_X: Final = 54.0
GAP_Y: Final = 14.0
PAD: Final = 14.0
#: Room for a group's title.
HEAD: Final = 22.0
SWEEPS: Final = 8
#: More edges than this between two boxes of one level, one of them a group, are drawn as one.
BUNDLE: Final = 6

Key = Hashable
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """Top left corner and size, in pixels. ``depth`` is 0 at the top level."""

    id: str
    x: float
    y: float
    width: float
    height: float
    depth: int
    is_group: bool


@dataclass(frozen=True, slots=True)
class Wire:
    source: str
    target: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Picture:
    width: float
    height: float
    #: groups before what they hold
    boxes: tuple[Box, ...]
    wires: tuple[Wire, ...]


@dataclass(slots=True)
class _Level:
    """One group's contents while they are placed."""

    sizes: dict[Key, tuple[float, float]] = field(default_factory=dict)
    edges: list[tuple[Key, Key, Key]] = field(default_factory=list)
    first: set[Key] = field(default_factory=set)
    last: set[Key] = field(default_factory=set)


@dataclass(slots=True)
class _Placed:
    at: dict[Key, Point]
    routes: dict[Key, list[Point]]
    width: float
    height: float


def arrange(
    sizes: Mapping[str, tuple[float, float]], parents: Mapping[str, str | None], edges: Iterable[tuple[str, str]]
) -> Picture:
    """``sizes`` has every node that is drawn as a box of its own; ``parents`` the group of each node and of each group
    (None at the top). Edges join nodes of ``sizes``. Sizes and coordinates are pixels."""
    wanted = _bundled(list(edges), parents)
    groups = set(parents.values()) - {None}
    levels: dict[str | None, _Level] = {group: _Level() for group in [None, *groups]}
    for node, size in sizes.items():
        levels[parents.get(node)].sizes[node] = size
    for number, (source, target) in enumerate(wanted):
        _lift(number, source, target, parents, levels)
    placed: dict[str | None, _Placed] = {}
    for group in sorted(groups, key=lambda one: -len(_chain(one, parents))):
        done = _place(levels[group])
        placed[group] = done
        levels[parents.get(group)].sizes[group] = (done.width + 2 * PAD, done.height + PAD + HEAD)  # type: ignore[arg-type]
    placed[None] = _place(levels[None])
    return _picture(sizes, parents, wanted, levels, placed)


def _chain(node: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """The groups around a node, innermost first."""
    chain = []
    group = parents.get(node) if node is not None else None
    while group is not None:
        chain.append(group)
        group = parents.get(group)
    return chain


def _bundled(edges: list[tuple[str, str]], parents: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Edges between the same two boxes of their common level, drawn as one from border to border when many."""
    by_boxes: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for source, target in dict.fromkeys(edges):
        by_boxes[_boxes(source, target, parents)].append((source, target))
    return [edge for boxes, members in by_boxes.items() for edge in ([boxes] if len(members) > BUNDLE else members)]


def _boxes(source: str, target: str, parents: Mapping[str, str | None]) -> tuple[str, str]:
    """The two boxes of their innermost common group that hold source and target."""
    left, right = [source, *_chain(source, parents)], [target, *_chain(target, parents)]
    while len(left) > 1 and len(right) > 1 and left[-1] == right[-1]:
        left.pop()
        right.pop()
    return left[-1], right[-1]


def _lift(
    number: int, source: str, target: str, parents: Mapping[str, str | None], levels: dict[str | None, _Level]
) -> None:
    """Enters an edge in its common level, and a piece to a port in each group that it leaves or enters on the way."""
    box_from, box_to = _boxes(source, target, parents)
    levels[parents.get(box_from)].edges.append(((number, None), box_from, box_to))
    inner: Key = source
    for group in _chain(source, parents):
        if inner == box_from or source == box_from:
            break
        port = ("out", number, group)
        levels[group].sizes[port] = (0.0, 2.0)
        levels[group].last.add(port)
        levels[group].edges.append(((number, group), inner, port))
        inner = group
    inner = target
    for group in _chain(target, parents):
        if inner == box_to or target == box_to:
            break
        port = ("in", number, group)
        levels[group].sizes[port] = (0.0, 2.0)
        levels[group].first.add(port)
        levels[group].edges.append(((number, group), port, inner))
        inner = group


def _place(level: _Level) -> _Placed:
    """Coordinates of one level's boxes, from (0, 0), and the route of each of its edges."""
    edges = _without_cycles(level)
    rank = _ranks(level, edges)
    sizes = dict(level.sizes)
    links: list[tuple[Key, Key]] = []
    chains: dict[Key, list[Key]] = {}
    for key, source, target, _turned in edges:
        chain = [source, *(("via", key, at) for at in range(rank[source] + 1, rank[target])), target]
        for place, via in enumerate(chain[1:-1], rank[source] + 1):
            sizes[via], rank[via] = (0.0, 2.0), place
        links.extend(itertools.pairwise(chain))
        chains[key] = chain
    layers: list[list[Key]] = [[] for _ in range(max(rank.values(), default=-1) + 1)]
    for node in sizes:
        layers[rank[node]].append(node)
    before, after = _sides(links)
    _order(layers, before, after)
    ys = _heights(layers, sizes, before, after)
    at: dict[Key, Point] = {}
    wide_of: list[float] = []
    left = 0.0
    for layer in layers:
        wide = max((sizes[node][0] for node in layer), default=0.0)
        wide_of.append(wide)
        for node in layer:
            at[node] = (left + (wide if node in level.last else 0.0), ys[node])
        left += wide + GAP_X
    height = max((at[node][1] + sizes[node][1] for node in at), default=0.0)
    routes = {
        key: _through(chain[1:-1], at, [wide_of[rank[via]] for via in chain[1:-1]]) for key, chain in chains.items()
    }
    for key, _source, _target, turned in edges:
        if turned:
            routes[key] = routes[key][::-1]
    return _Placed(at, routes, max(0.0, left - GAP_X), height)


def _through(vias: Sequence[Key], at: Mapping[Key, Point], widths: Sequence[float]) -> list[Point]:
    """Level through each layer on the way, so that a line bends only in the gaps and runs behind no box."""
    points: list[Point] = []
    for via, wide in zip(vias, widths, strict=True):
        x, y = at[via]
        points += [(x, y + 1), (x + wide, y + 1)]
    return points


def _without_cycles(level: _Level) -> list[tuple[Key, Key, Key, bool]]:
    """The edges with those that close a cycle turned round (groups may form one although tasks do not)."""
    followers: dict[Key, list[Key]] = defaultdict(list)
    for _key, source, target in level.edges:
        followers[source].append(target)
    state: dict[Key, int] = {}
    turned: set[tuple[Key, Key]] = set()
    for root in level.sizes:
        stack = [] if root in state else [(root, iter(followers[root]))]
        state.setdefault(root, 1)
        while stack:
            node, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                state[node] = 2
                stack.pop()
            elif state.get(following) == 1:
                turned.add((node, following))
            elif following not in state:
                state[following] = 1
                stack.append((following, iter(followers[following])))
    return [
        (key, target, source, True) if (source, target) in turned else (key, source, target, False)
        for key, source, target in level.edges
        if source != target
    ]


def _ranks(level: _Level, edges: Sequence[tuple[Key, Key, Key, bool]]) -> dict[Key, int]:
    """Layer of each box by longest path; ports at the outer layers, sources beside what they feed."""
    followers: dict[Key, list[Key]] = defaultdict(list)
    waiting: dict[Key, int] = dict.fromkeys(level.sizes, 0)
    for _key, source, target, _turned in edges:
        followers[source].append(target)
        waiting[target] += 1
    sources = [node for node, count in waiting.items() if count == 0]
    rank = dict.fromkeys(sources, 0)
    order: list[Key] = []
    ready = list(sources)
    while ready:
        node = ready.pop()
        order.append(node)
        for following in followers[node]:
            rank[following] = max(rank.get(following, 0), rank[node] + 1)
            waiting[following] -= 1
            if waiting[following] == 0:
                ready.append(following)
    for node in reversed(order):
        if rank[node] == 0 and node not in level.first and followers[node]:
            rank[node] = max(0, min(rank[following] for following in followers[node]) - 1)
    end = max(rank.values(), default=0)
    for node in level.last:
        rank[node] = end
    return rank


def _sides(links: Iterable[tuple[Key, Key]]) -> tuple[dict[Key, list[Key]], dict[Key, list[Key]]]:
    before: dict[Key, list[Key]] = defaultdict(list)
    after: dict[Key, list[Key]] = defaultdict(list)
    for source, target in links:
        after[source].append(target)
        before[target].append(source)
    return before, after


def _order(layers: list[list[Key]], before: dict[Key, list[Key]], after: dict[Key, list[Key]]) -> None:
    """Sorts each layer by the mean place of its neighbours, to and fro; keeps the order with the fewest crossings."""
    best, fewest = [list(layer) for layer in layers], _crossings(layers, before)
    for sweep in range(SWEEPS):
        if fewest == 0:
            break
        forwards = sweep % 2 == 0
        neighbours = before if forwards else after
        pairs = list(itertools.pairwise(layers))
        for fixed, moved in pairs if forwards else [(b, a) for a, b in reversed(pairs)]:
            place = {node: at for at, node in enumerate(fixed)}
            now = {node: at for at, node in enumerate(moved)}
            moved.sort(key=lambda node: _mean([place[one] for one in neighbours[node]], now[node]))
        count = _crossings(layers, before)
        if count < fewest:
            best, fewest = [list(layer) for layer in layers], count
    for layer, kept in zip(layers, best, strict=True):
        layer[:] = kept


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _crossings(layers: Sequence[Sequence[Key]], before: Mapping[Key, Sequence[Key]]) -> int:
    total = 0
    for fixed, layer in itertools.pairwise(layers):
        place = {node: at for at, node in enumerate(fixed)}
        seen: list[int] = []
        for node in layer:
            ends = sorted(place[one] for one in before.get(node, ()))
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _heights(
    layers: Sequence[Sequence[Key]],
    sizes: Mapping[Key, tuple[float, float]],
    before: Mapping[Key, Sequence[Key]],
    after: Mapping[Key, Sequence[Key]],
) -> dict[Key, float]:
    """Top of each box: as near to the middle of its neighbours as order and gaps allow."""
    middle: dict[Key, float] = {}
    for layer in layers:
        y = 0.0
        for node in layer:
            middle[node] = y + sizes[node][1] / 2
            y += sizes[node][1] + GAP_Y
    passes = [(layers, before), (layers[::-1], after), (layers, before), (layers[::-1], after), (layers, None)]
    for ordered, side in passes:
        for layer in ordered:
            wishes = []
            for node in layer:
                near = side.get(node, ()) if side is not None else [*before.get(node, ()), *after.get(node, ())]
                wishes.append(_mean([middle[one] for one in near], middle[node]))
            gaps = [(sizes[a][1] + sizes[b][1]) / 2 + GAP_Y for a, b in itertools.pairwise(layer)]
            middle.update(zip(layer, _spaced(wishes, gaps), strict=True))
    top = min((middle[node] - sizes[node][1] / 2 for node in middle), default=0.0)
    return {node: middle[node] - sizes[node][1] / 2 - top for node in middle}


def _spaced(wishes: Sequence[float], gaps: Sequence[float]) -> list[float]:
    """The places nearest to the wishes (least squares) of which each lies at least a gap after the one before."""
    offset = [0.0]
    for gap in gaps:
        offset.append(offset[-1] + gap)
    blocks: list[tuple[float, int]] = []  # (sum, count) of wishes that had to be pooled
    for wish, shift in zip(wishes, offset, strict=False):
        total, count = wish - shift, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            more, members = blocks.pop()
            total, count = total + more, count + members
        blocks.append((total, count))
    flat = [total / count for total, count in blocks for _ in range(count)]
    return [place + shift for place, shift in zip(flat, offset, strict=False)]


def _picture(
    sizes: Mapping[str, tuple[float, float]],
    parents: Mapping[str, str | None],
    edges: Sequence[tuple[str, str]],
    levels: Mapping[str | None, _Level],
    placed: Mapping[str | None, _Placed],
) -> Picture:
    """Puts the levels into each other and the pieces of each route end to end."""
    origin: dict[str | None, Point] = {None: (PAD, PAD)}
    for group in sorted((one for one in placed if one is not None), key=lambda one: len(_chain(one, parents))):
        (x0, y0), (x, y) = origin[parents.get(group)], placed[parents.get(group)].at[group]
        origin[group] = (x0 + x + PAD, y0 + y + HEAD)
    boxes = []
    for node in [
        *sorted((one for one in placed if one is not None), key=lambda one: len(_chain(one, parents))),
        *sizes,
    ]:
        parent = parents.get(node)
        (x0, y0), (x, y) = origin[parent], placed[parent].at[node]
        boxes.append(Box(node, x0 + x, y0 + y, *levels[parent].sizes[node], len(_chain(node, parents)), node in placed))
    by_id = {box.id: box for box in boxes}
    wires = [Wire(a, b, _route(n, by_id[a], by_id[b], parents, origin, placed)) for n, (a, b) in enumerate(edges)]
    return Picture(placed[None].width + 2 * PAD, placed[None].height + 2 * PAD, tuple(boxes), tuple(wires))


def _route(
    number: int,
    source: Box,
    target: Box,
    parents: Mapping[str, str | None],
    origin: Mapping[str | None, Point],
    placed: Mapping[str | None, _Placed],
) -> tuple[Point, ...]:
    def shifted(group: str | None, points: Iterable[Point]) -> list[Point]:
        x0, y0 = origin[group]
        return [(x0 + x, y0 + y) for x, y in points]

    points: list[Point] = [(source.x + source.width, source.y + source.height / 2)]
    for group in _chain(source.id, parents):
        if ("out", number, group) not in placed[group].at:
            break
        points += shifted(group, placed[group].routes[number, group])
        x, y = (
            origin[group][0] + placed[group].width + PAD,
            shifted(group, [placed[group].at["out", number, group]])[0][1],
        )
        points.append((x, y + 1))
    common = parents.get(_boxes(source.id, target.id, parents)[0])
    points += shifted(common, placed[common].routes.get((number, None), ()))
    inward: list[Point] = []
    for group in _chain(target.id, parents):
        if ("in", number, group) not in placed[group].at:
            break
        x, y = origin[group][0] - PAD, shifted(group, [placed[group].at["in", number, group]])[0][1]
        inward = [(x, y + 1), *shifted(group, placed[group].routes[number, group]), *inward]
    return (*points, *inward, (target.x, target.y + target.height / 2))
