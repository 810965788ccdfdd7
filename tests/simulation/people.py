"""People of the world: they do through ``actions/`` and the DAG processor's store whatever people can do.

What they do to runs and task instances that are there is in ``judgements``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scheduler_app import access
from scheduler_app.actions import backfills, hold, limits, pause, pools, trigger
from scheduler_app.actions.assets import create_event, delete_queued
from scheduler_app.actions.errors import ActionError
from scheduler_app.dag_processor import store
from scheduler_app.dag_processor.bundle import Bundle
from scheduler_app.engine.dag import to_doc
from scheduler_app.models import Asset, Backfill, db
from tests.rows import T0

from .cast import LIMITS, NUMBERS, PARTITIONS, POOLS, Part
from .deeds import Deed

if TYPE_CHECKING:
    from .world import World

PERSON = access.system("person", "ann")
BUNDLE = Bundle("dags", Path("/world"))


def asked(world: World, what: str, work: Callable[[], Any], then: Callable[[Any], None] = lambda _: None) -> Deed:
    """A person's request: done, or refused with a sentence."""

    def attempt() -> tuple[bool, Any]:
        try:
            return True, work()
        except ActionError as error:
            return False, error

    def tell(answer: tuple[bool, Any]) -> str:
        if answer[0]:
            then(answer[1])
            return what
        return f"{what}: refused, {answer[1]}"

    return Deed(attempt, tell)


def a_run(world: World, *wanted: str) -> tuple[str, str] | None:
    """DAG and run id of one of the runs in these states."""
    found = db.fetch("SELECT dag_id, run_id FROM scheduler_dag_run WHERE state = ANY(%s) ORDER BY id", [list(wanted)])
    return world.rng.choice(found) if found else None  # type: ignore[return-value]


def a_task(world: World, *wanted: str | None) -> tuple[str, str, str, int] | None:
    found = db.fetch(
        "SELECT ti.dag_id, r.run_id, ti.task_id, ti.map_index FROM scheduler_task_instance ti"
        " JOIN scheduler_dag_run r ON r.id = ti.dag_run_id WHERE coalesce(ti.state, 'none') = ANY(%s) ORDER BY ti.id",
        [[state or "none" for state in wanted]],
    )
    return world.rng.choice(found) if found else None  # type: ignore[return-value]


def triggers_a_run(world: World) -> Deed | None:
    if world.spent("trigger", 4):
        return None
    dag_id, now = world.rng.choice(world.parts).dag_id, world.now
    later = now + timedelta(seconds=world.rng.choice([0, 0, 30]))
    return asked(world, dag_id, lambda: trigger.trigger_run(PERSON, dag_id, now, run_id=_id(world), run_after=later))


def _id(world: World) -> str:
    return f"ann_{world.step_number}"


def pauses(world: World) -> Deed:
    dag_id, paused, now = world.rng.choice(world.parts).dag_id, world.rng.random() < 0.5, world.now
    return asked(world, f"{dag_id} {paused}", lambda: pause.set_paused(PERSON, dag_id, paused, now))


def holds(world: World) -> Deed | None:
    rng, now = world.rng, world.now
    until = now + timedelta(seconds=20) if rng.random() < 0.5 else None
    kind = rng.choice(["run", "task", "dag"])
    if kind == "dag":
        dag_id = rng.choice(world.parts).dag_id
        return asked(world, dag_id, lambda: hold.hold_new_runs(PERSON, dag_id, now, why="a look", until=until))
    if kind == "run":
        run = a_run(world, "queued", "running")
        return run and asked(world, f"{run}", lambda: hold.hold_run(PERSON, *run, now, why="a look", until=until))
    task = a_task(world, None, "scheduled", "up_for_retry")
    if task is None:
        return None
    where, index = task[:3], task[3]
    return asked(
        world, f"{task}", lambda: hold.hold_task(PERSON, *where, now, why="a look", map_index=index, until=until)
    )


_HELD = """
SELECT 'dag', dag_id, '', '', -1 FROM scheduler_dag WHERE held_at IS NOT NULL
UNION ALL SELECT 'run', dag_id, run_id, '', -1 FROM scheduler_dag_run WHERE held_at IS NOT NULL
UNION ALL SELECT 'task', ti.dag_id, r.run_id, ti.task_id, ti.map_index
FROM scheduler_task_instance ti JOIN scheduler_dag_run r ON r.id = ti.dag_run_id WHERE ti.held_at IS NOT NULL
ORDER BY 1, 2, 3, 4, 5
"""


def releases(world: World) -> Deed | None:
    held = db.fetch(_HELD)
    return release(world, *world.rng.choice(held)) if held else None


def release_all(world: World) -> None:
    for held in db.fetch(_HELD):
        world.do(release(world, *held))


def release(world: World, kind: str, dag_id: str, run_id: str, task_id: str, index: int) -> Deed:
    now = world.now
    work: dict[str, Callable[[], Any]] = {
        "dag": lambda: hold.release_new_runs(PERSON, dag_id, now),
        "run": lambda: hold.release_run(PERSON, dag_id, run_id, now),
        "task": lambda: hold.release_task(PERSON, dag_id, run_id, task_id, now, map_index=index),
    }
    return asked(world, f"{kind} {dag_id} {run_id} {task_id} {index}", work[kind])


def resizes_a_pool(world: World) -> Deed:
    name, now = world.rng.choice(sorted(POOLS)), world.now
    return resize(world, name, POOLS[name] + world.rng.choice([-1, 0, 2]), now)


def resize(world: World, name: str, slots: int, now: Any) -> Deed:
    """Never below what its widest task needs: that would end the task (S-05)."""
    slots = max(slots, 2)
    return asked(
        world,
        f"{name} {slots}",
        lambda: pools.change(PERSON, name, now, slots=slots),
        lambda _: world.pools[name].set(slots),
    )


def changes_a_limit(world: World) -> Deed | None:
    """Of a keyed limit; 0 closes it."""
    if "limited" not in {part.dag_id for part in world.parts}:
        return None
    name = world.rng.choice(sorted(LIMITS))
    return set_limit(world, name, LIMITS[name][0] + world.rng.choice([-1, 0, 1]))


def set_limit(world: World, name: str, amount: int) -> Deed:
    now = world.now
    return asked(
        world,
        f"{name} {amount}",
        lambda: limits.change(PERSON, name, now, amount=amount),
        lambda _: world.keyed[name].set(amount),
    )


def backfills_a_dag(world: World) -> Deed | None:
    """Asks for a backfill, or pauses, goes on with or cancels the one that is under way."""
    if "daily" not in {part.dag_id for part in world.parts}:
        return None
    row, rng, now = Backfill.objects.unfinished().first(), world.rng, world.now
    if row is None:
        wanted = backfills.Wanted(
            "daily",
            T0 - timedelta(days=rng.choice([3, 5, 8])),
            T0 - timedelta(days=1),
            reprocess_behavior=rng.choice(["none", "failed", "completed"]),
            reverse=rng.random() < 0.5,
            max_active_runs=rng.choice([1, 2]),
        )
        return asked(
            world,
            "create",
            lambda: backfills.create(PERSON, wanted, now),
            lambda made: world.backfill_limits.__setitem__(made.pk, wanted.max_active_runs),
        )
    if rng.random() < 0.3:
        return asked(world, f"cancel {row.pk}", lambda: backfills.cancel(PERSON, row.pk, now))
    paused = not row.is_paused
    return asked(world, f"pause {row.pk} {paused}", lambda: backfills.set_paused(PERSON, row.pk, paused, now))


def tells_of_an_asset(world: World) -> Deed | None:
    """An update that happened elsewhere; seldom somebody drops what is queued."""
    assets = list(Asset.objects.order_by("pk").values_list("pk", flat=True))
    if not assets:
        return None
    key, now = world.rng.choice(assets), world.now
    if world.rng.random() < 0.1:
        return asked(world, f"drop {key}", lambda: delete_queued(PERSON, now, asset_id=key))
    partition = world.rng.choice([None, *PARTITIONS])
    return asked(world, f"{key} {partition}", lambda: create_event(PERSON, key, now, partition_key=partition))


def changes_a_file(world: World) -> Deed:
    """The author adds or removes tasks, or changes how many may be active; the DAG processor stores it."""
    rng = world.rng
    part = rng.choice(world.parts)
    version = world.versions.get(part.dag_id, 0) + (1 if part.later and rng.random() < 0.7 else 0)
    fields = {name: choose(rng) for name, choose in NUMBERS.items() if rng.random() < 0.4}
    return store_file(world, part, version, fields)


def store_file(world: World, part: Part, version: int = 0, fields: dict[str, Any] | None = None) -> Deed:
    dag = part.dag(version, **(fields or {}))
    document = {"dags": [{**to_doc(dag), "is_paused_upon_creation": False}], "seconds": 0.1}
    path = f"{part.dag_id}.py"
    parsed = store.Parsed(BUNDLE, path, document, stamp={}, source_sha256=f"{part.dag_id}{version}")
    now, conf = world.now, world.conf

    def then(done: store.Stored) -> str:
        if done.error or done.dag_ids != (part.dag_id,):
            world.fail("I5", f"the file of {part.dag_id} was not stored: {done}")
        world.versions[part.dag_id] = version
        world.limit(
            part.dag_id,
            dag.max_active_runs or conf.max_active_runs_per_dag,
            dag.max_active_tasks or conf.max_active_tasks_per_dag,
        )
        return f"{part.dag_id} version {version} {fields or ''} {'new' if done.new_versions else 'as it was'}"

    return Deed(lambda: store.store(parsed, now, conf), then)
