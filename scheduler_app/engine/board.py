"""The instances of one run by task, and the questions that ``look`` and ``explain`` share.

The states on the board change while a look moves instances, so that later tasks see what earlier ones became.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from scheduler_app.engine import skip_lists
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.mapping import Length, Source, map_length, product
from scheduler_app.engine.skip_lists import Named, SkipList
from scheduler_app.engine.states import FAILED, NONE, REMOVED, SKIPPED, SUCCESS, UPSTREAM_FAILED, State
from scheduler_app.engine.trigger_rules import RULES, RUN, Counts, Decision


class Ti(NamedTuple):
    """A task instance, as far as readiness reads it."""

    id: Any
    task_id: str
    map_index: int = -1
    state: State = NONE
    try_number: int = 0
    max_tries: int = 0
    #: up_for_retry and up_for_reschedule: not before this instant
    next_at: datetime | None = None
    #: length of the list or dict that it pushed as return value; ``mapping.NO_LENGTH`` = pushed something without a
    #: length; None = pushed nothing. Read only where ``task.feeds_mapping``
    map_length: int | None = None
    #: somebody holds it
    held: bool = False
    #: whom it skipped when it ended (``skip_lists``); None = nobody
    skips: SkipList | None = None


class RunFact(NamedTuple):
    """A run, as far as readiness reads it."""

    logical_date: datetime | None = None
    #: ``explain`` reads the next three; ``look`` is asked about running runs only
    state: str = "running"
    is_paused: bool = False
    held: bool = False
    #: a run with a logical date in the future may execute all the same
    allow_future: bool = False
    #: first run of a backfill, or its tasks were told to ignore the past
    ignore_past: bool = False


class Answer(NamedTuple):
    """What the upstreams of an instance make of it; ``scope`` = decided by the setups around it, not by its rule."""

    decision: Decision
    counts: Counts
    scope: bool = False


NOTHING_ABOVE = Answer(RUN, Counts(0))


class Board:
    """Instances by task. ``rows[task_id]`` and ``states[task_id]`` run in parallel."""

    __slots__ = ("_places", "_skips", "_tallies", "graph", "rows", "states")

    def __init__(self, graph: Graph, tis: Iterable[Ti]) -> None:
        self.graph = graph
        rows: dict[str, list[Ti]] = {}
        for ti in tis:
            of_task = rows.get(ti[1])
            if of_task is None:
                rows[ti[1]] = [ti]
            else:
                of_task.append(ti)
        self.rows = rows
        self.states: dict[str, list[State]] = {task_id: [ti[3] for ti in of_task] for task_id, of_task in rows.items()}
        self._tallies: dict[str, Answer] = {}
        self._places: dict[str, dict[int, int]] = {}
        self._skips: dict[str, Named] = {}

    def answer(self, task_id: str, map_index: int) -> Answer:
        """What an instance's upstreams and the setups around it make of it now."""
        if task_id in self.graph.map_groups and map_index >= 0:
            return self._answer(task_id, self.relevant(task_id, map_index))
        known = self._tallies.get(task_id)
        if known is None:
            known = self._tallies[task_id] = self._answer(task_id, self.states)
        return known

    def length(self, task_id: str) -> Length:
        """How many instances a mapped task (or one in a mapped group) must have."""
        own = self.graph.tasks[task_id].mapped
        groups = self.graph.map_groups.get(task_id, ())
        mapped = [self.graph.groups[group_id].mapped for group_id in groups] + ([] if own is None else [own])
        return product([map_length(document, self._sources) for document in mapped])

    def skipped_by(self, task_id: str, map_index: int) -> str | None:
        """The direct upstream whose decision skips this instance, also when it is looked at again."""
        for up in self.graph.skippers.get(task_id, ()):
            named = self._skipped_of(up)
            if task_id in named:
                indexes = named[task_id]
                if indexes is None or map_index in indexes:
                    return up
        return None

    def _skipped_of(self, task_id: str) -> Named:
        """Whom the instances of a task skipped, all together."""
        known = self._skips.get(task_id)
        if known is None:
            known = self._skips[task_id] = {}
            for ti in self.rows.get(task_id, ()):
                if ti.state == SUCCESS and ti.skips:
                    for name, indexes in skip_lists.named(self.graph, task_id, ti.map_index, ti.skips).items():
                        others = known.get(name, set())
                        known[name] = None if indexes is None or others is None else others | indexes
        return known

    def _answer(self, task_id: str, states: Mapping[str, list[State]]) -> Answer:
        graph = self.graph
        if graph.has_setups:
            scoped = graph.scope_setups.get(task_id)
            if scoped is not None:
                counts = self._tally(scoped, states)
                decision = RULES["all_success"](counts)
                if decision != RUN:
                    return Answer(decision, counts, scope=True)
        upstream = graph.upstream[task_id]
        if not upstream:
            return NOTHING_ABOVE
        counts = self._tally(upstream, states)
        return Answer(RULES[graph.tasks[task_id].trigger_rule](counts), counts)

    def _tally(self, upstream: Iterable[str], states_of: Mapping[str, list[State]]) -> Counts:
        """Counts by state. An upstream without any instance counts as one that has not ended."""
        total = success = failed = upstream_failed = skipped = 0
        setups = setups_success = setups_skipped = 0
        tasks = self.graph.tasks if self.graph.has_setups else None
        for up in upstream:
            states = states_of.get(up)
            if states is None:
                total += 1
                continue
            if tasks is not None and tasks[up].is_setup:
                setups += len(states) - states.count(REMOVED)
                setups_success += states.count(SUCCESS)
                setups_skipped += states.count(SKIPPED)
            for state in states:
                if state == SUCCESS:
                    success += 1
                elif state == FAILED:
                    failed += 1
                elif state == UPSTREAM_FAILED:
                    upstream_failed += 1
                elif state == SKIPPED:
                    skipped += 1
                elif state == REMOVED:
                    continue
                total += 1
        return Counts(total, success, failed, upstream_failed, skipped, setups, setups_success, setups_skipped)

    def relevant(self, task_id: str, map_index: int) -> dict[str, list[State]]:
        """Upstream → the states that matter to one index: those of its own element where they share a mapped group."""
        map_groups = self.graph.map_groups
        mine = map_groups.get(task_id, ())
        found = {}
        for up in (*self.graph.upstream[task_id], *self.graph.scope_setups.get(task_id, ())):
            states = self.states.get(up)
            if states is None:
                continue
            theirs = map_groups.get(up, ())
            shared = _shared(mine, theirs)
            if not shared:
                found[up] = states
            else:
                places = self._places_of(up)
                wanted = (-1, *self._indexes(mine[shared:], theirs[shared:], map_index))
                found[up] = [states[places[index]] for index in wanted if index in places]
        return found

    def _indexes(self, mine: Sequence[str], theirs: Sequence[str], map_index: int) -> range:
        """The upstream's map indexes in one's own element of the shared groups, given the inner groups of both."""
        if not mine and not theirs:
            return range(map_index, map_index + 1)
        element = map_index // max(self._width(mine), 1)
        width = self._width(theirs)
        return range(element * width, (element + 1) * width)

    def _width(self, groups: Sequence[str]) -> int:
        lengths = [map_length(self.graph.groups[group_id].mapped, self._sources) for group_id in groups]
        return product(lengths).value or 0

    def _places_of(self, task_id: str) -> dict[int, int]:
        places = self._places.get(task_id)
        if places is None or len(places) < len(self.rows[task_id]):
            places = self._places[task_id] = {ti[2]: place for place, ti in enumerate(self.rows[task_id])}
        return places

    def _sources(self, task_id: str) -> list[Source]:
        rows = self.rows.get(task_id, ())
        return [Source(ti[2], state, ti[7]) for ti, state in zip(rows, self.states.get(task_id, ()), strict=True)]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """How many outer groups two chains have in common."""
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
