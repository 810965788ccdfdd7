"""I5: a definition that nobody can read, a schedule that cannot say its next slot, a run whose look raises.

One of them may be there for a while, also when everything else comes to its end; whatever has nothing to do with it
goes on all the same. Once it is mended its own DAG goes on too.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scheduler_app.models import DagModel, DagVersion, db, graphs
from scheduler_app.scheduler.phases import schedule_tasks

from .cast import Part
from .deeds import Deed

if TYPE_CHECKING:
    from .world import World

#: How often something is spoilt in one seed.
MOST = 3


class Poisoned(Exception):
    """What a phase raises over a row that is spoilt."""


@dataclass(frozen=True)
class Poison:
    dag_id: str
    text: str
    mend: Callable[[], Any]


def spoils(world: World) -> Deed | None:
    """Of DAGs without callbacks: whose definition cannot be read, nobody knows them."""
    plain = [part for part in world.parts if not _asks_for_callbacks(part)]
    plain = [part for part in plain if part.dag_id not in world.spoilt]
    if not plain or world.spent("spoil", MOST):
        return None
    part = world.rng.choice(plain)
    kind = world.rng.choice([_definition, _look, _schedule])
    return Deed(lambda: kind(world, part), lambda poison: _remember(world, poison))


def mends(world: World) -> Deed | None:
    if not world.spoilt:
        return None
    return mend(world, world.rng.choice(sorted(world.spoilt)))


def mend(world: World, dag_id: str) -> Deed:
    poison = world.spoilt.pop(dag_id)
    return Deed(poison.mend, lambda _: poison.text)


def _remember(world: World, poison: Poison | None) -> str:
    if poison is None:
        return "nothing to spoil"
    world.spoilt[poison.dag_id] = poison
    return poison.text


def _asks_for_callbacks(part: Part) -> bool:
    return "callbacks" in part.fields or any("callbacks" in task for task in part.tasks.values())


def _definition(world: World, part: Part) -> Poison:
    """Its newest version was stored by a newer version of the scheduler."""
    version = DagModel.objects.get(pk=part.dag_id).latest_version_id
    kept = DagVersion.objects.get(pk=version).document
    _write(version, {"schema_version": 999})
    return Poison(part.dag_id, f"the definition of {part.dag_id}", lambda: _write(version, kept))


def _write(version: Any, document: Any) -> None:
    DagVersion.objects.filter(pk=version).update(document=document)
    graphs.forget()


def _look(world: World, part: Part) -> Poison | None:
    found = db.fetch(
        "SELECT id FROM scheduler_dag_run WHERE dag_id = %s AND state = 'running' ORDER BY id", [part.dag_id]
    )
    if not found:
        return None
    run_id = world.rng.choice(found)[0]
    _BAD_RUNS.add(run_id)
    return Poison(part.dag_id, f"run {run_id} of {part.dag_id}", lambda: _BAD_RUNS.discard(run_id))


def _schedule(world: World, part: Part) -> Poison:
    kept = DagModel.objects.get(pk=part.dag_id).timetable
    rows = DagModel.objects.filter(pk=part.dag_id)
    rows.update(timetable={"kind": "of a plugin that is gone"})
    return Poison(part.dag_id, f"the schedule of {part.dag_id}", lambda: rows.update(timetable=kept))


#: Runs whose looks raise, late enough to take the whole batch down with them.
_BAD_RUNS: set[int] = set()


@contextlib.contextmanager
def poisonable() -> Iterator[None]:
    """A stage on which looks may raise."""
    kept = schedule_tasks._end_runs

    def end_runs(looked: Any, tick: Any) -> Any:
        bad = [one.row.id for one in looked if one.row.id in _BAD_RUNS]
        if bad:
            raise Poisoned(f"run {bad[0]}")
        return kept(looked, tick)

    schedule_tasks._end_runs = end_runs
    try:
        yield
    finally:
        schedule_tasks._end_runs = kept
        _BAD_RUNS.clear()


def forget() -> None:
    """A new world has nothing spoilt."""
    _BAD_RUNS.clear()
