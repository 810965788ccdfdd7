"""A run without a database: ``scenario("extract >> [clean, check] >> load", clean="failed")``.

It drives the engine as the loop does, by partial looks at what changed, and checks after each of them that a look at
everything finds nothing more, and that every move is legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scheduler_app.engine.dag import Dag, Group
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.outcome import Outcome, deadlock, outcome
from scheduler_app.engine.readiness import Look, Previous, RunFact, Ti, look
from scheduler_app.engine.retries import Retry, after_failure
from scheduler_app.engine.skips import skips_after
from scheduler_app.engine.states import FINISHED, SCHEDULED, TASK_VERBS
from scheduler_app.engine.task_dates import task_ids_at
from tests.shapes import shape

NOW = datetime(2024, 3, 15, tzinfo=UTC)


def dag(
    text: str,
    tasks: Mapping[str, Mapping[str, Any]] | None = None,
    groups: Iterable[Group] = (),
    **fields: Any,
) -> Dag:
    """As ``tests.shapes.shape``; ``tasks`` gives fields of some tasks."""
    if groups:
        fields["groups"] = tuple(groups)
    return shape(text, tasks=tasks, **fields)


@dataclass
class Played:
    """What a run came to. Keys of ``states`` and ``tries`` are ``task`` or ``task[index]``."""

    graph: Graph
    tis: list[Ti]
    run: Outcome
    order: list[str] = field(default_factory=list)

    @property
    def states(self) -> dict[str, str | None]:
        return {key(ti): ti.state for ti in self.tis}

    @property
    def tries(self) -> dict[str, int]:
        return {key(ti): ti.try_number for ti in self.tis}


def key(ti: Ti) -> str:
    return ti.task_id if ti.map_index < 0 else f"{ti.task_id}[{ti.map_index}]"


def scenario(text: str | Dag, outcomes: Mapping[str, Any] | None = None, **more: Any) -> Played:
    """Play a DAG to its end. What an attempt does, by task or by ``task[index]``:

    a state ("failed"), ``{"skip": [ids]}`` (a branch), ``{"push": n}`` (a list of that length), or a list of these, one
    for each try. Unnamed ones succeed and push a number.
    """
    fields = {name: more.pop(name) for name in ("tasks", "groups") if name in more}
    built = text if isinstance(text, Dag) else dag(text, **fields)
    return World(built, {**(outcomes or {}), **more}).play()


class World:
    """One run, step by step: ``play`` to the end, or ``settle``, ``run_attempts`` and ``end`` by oneself."""

    def __init__(self, built: Dag, outcomes: Mapping[str, Any], previous: Previous | None = None) -> None:
        self.graph = Graph(built)
        self.outcomes = outcomes
        self.previous = previous
        self.run = RunFact(logical_date=NOW)
        self.now = NOW
        self.tis: list[Ti] = [
            Ti(number, task_id, max_tries=self.graph.tasks[task_id].retries)
            for number, task_id in enumerate(task_ids_at(self.graph, NOW))
        ]
        self.order: list[str] = []

    def play(self) -> Played:
        changed: set[str] = set(self.graph.tasks)
        while True:
            self.settle(changed)
            changed = self.run_attempts()
            if changed:
                continue
            everything = self.look()
            if everything.next_check_at is None:
                break
            self.now = everything.next_check_at
            changed = set(self.graph.tasks)
        ended = outcome(self.graph, [(ti.task_id, ti.state) for ti in self.tis])
        return Played(self.graph, self.tis, deadlock(self.graph, self.tis, everything) or ended, self.order)

    def look(self, only: frozenset[str] | None = None, load: frozenset[str] | None = None) -> Look:
        tis = [ti for ti in self.tis if load is None or ti.task_id in load]
        return look(self.graph, tis, run=self.run, now=self.now, only=only, previous=self.previous)

    def settle(self, changed: set[str]) -> None:
        """Partial looks until nothing moves; then a look at everything must find nothing new."""
        while changed:
            near = self.graph.neighbourhood(changed)
            found = self.look(near.look_at, near.load)
            self.apply(found)
            changed = found.touched | {task_id for task_id, _ in found.expand}
        everything = self.look()
        assert (everything.moves, everything.expand) == ([], [])

    def apply(self, found: Look) -> None:
        by_id = {ti.id: place for place, ti in enumerate(self.tis)}
        for move in found.moves:
            self.move(by_id[move.ti_id], move.verb)
        for task_id, count in found.expand:
            have = {ti.map_index for ti in self.tis if ti.task_id == task_id}
            if have == {-1}:
                place = next(place for place, ti in enumerate(self.tis) if ti.task_id == task_id)
                self.tis[place] = self.tis[place]._replace(map_index=0)
                have = {0}
            retries = self.graph.tasks[task_id].retries
            for index in sorted(set(range(count)) - have):
                self.tis.append(Ti(len(self.tis), task_id, index, max_tries=retries))

    def move(self, place: int, verb: str, **fields: object) -> None:
        ti = self.tis[place]
        sources, target = TASK_VERBS[verb]
        assert ti.state in sources, f"{verb} from {ti.state}"
        if verb == "settle":
            fields["try_number"] = ti.try_number + 1
        self.tis[place] = ti._replace(state=target, **fields)  # type: ignore[arg-type]

    def run_attempts(self) -> set[str]:
        """Every scheduled instance is handed out and ends."""
        changed = set()
        for place, ti in enumerate(self.tis):
            if ti.state == SCHEDULED:
                changed |= self.attempt(place)
        return changed

    def attempt(self, place: int) -> set[str]:
        self.move(place, "queue")
        self.move(place, "start", try_number=self.tis[place].try_number + 1, next_at=None)
        ti = self.tis[place]
        self.order.append(key(ti))
        does = self.outcomes.get(key(ti), self.outcomes.get(ti.task_id, "success"))
        if isinstance(does, list):
            does = does[min(ti.try_number, len(does)) - 1]
        changed = {ti.task_id}
        if does == "failed":
            self.fail(place)
        elif does == "skipped":
            self.move(place, "skip")
        else:
            changed |= self.succeed(place, does if isinstance(does, dict) else {})
        return changed

    def succeed(self, place: int, does: Mapping[str, Any]) -> set[str]:
        self.move(place, "succeed", map_length=does.get("push", -1), skips=does.get("skip"))
        ti = self.tis[place]
        moves = skips_after(self.graph, ti.task_id, does.get("skip", ()), self.tis, map_index=ti.map_index)
        by_id = {ti.id: place for place, ti in enumerate(self.tis)}
        for move in moves:
            self.move(by_id[move.ti_id], move.verb)
        return {self.tis[by_id[move.ti_id]].task_id for move in moves}

    def fail(self, place: int) -> None:
        ti = self.tis[place]
        verdict = after_failure(self.graph.tasks[ti.task_id], ti.try_number, ti.max_tries, self.now)
        if isinstance(verdict, Retry):
            self.move(place, "retry", next_at=verdict.at)
        else:
            self.move(place, "fail")

    def is_over(self) -> bool:
        return all(ti.state in FINISHED for ti in self.tis)
