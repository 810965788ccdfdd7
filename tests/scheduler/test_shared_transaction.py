"""A look and the admission that shares its transaction: one move for what gets a slot, else nothing is different."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from scheduler_app.models import DagRun, TaskInstance, Wake, db
from scheduler_app.scheduler.loop import PHASES, Loop
from scheduler_app.scheduler.tick import Tick
from tests.scheduler.scene import Scene
from tests.scheduler.test_races import somebody_holds
from tests.shapes import parallel, shape

pytestmark = pytest.mark.django_db(transaction=True)

ADMISSION = "SELECT pg_advisory_xact_lock('scheduler_task_instance'::regclass::oid::int, 1)"


@contextmanager
def said() -> Iterator[list[str]]:
    """The statements that are sent while the block runs."""
    texts: list[str] = []

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        texts.append(sql)
        return execute(sql, params, many, context)

    with db.connection().execute_wrapper(wrapper):
        yield texts


def executed(texts: list[str], beginning: str) -> int:
    """How often a statement was executed that begins so (what is prepared says its beginning behind it)."""
    return sum(f"/* {beginning}" in text or text.startswith(beginning) for text in texts)


def ended(scene: Scene, run: DagRun, task_id: str) -> None:
    """The first task of a run is done, so that the next pass looks at the run."""
    scene.tick(2)
    scene.begin(scene.task(run, task_id))
    scene.end(scene.task(run, task_id))


def moved_by(run: DagRun) -> dict[str, str]:
    return dict(TaskInstance.objects.filter(dag_run=run).order_by("pk").values_list("task_id", "moved_by"))


def test_what_gets_its_slot_at_once_is_moved_once(scene: Scene) -> None:
    run = scene.run("a >> [b, c]")
    ended(scene, run, "a")
    before = scene.task(run, "b")
    scene.wait(5)
    with said() as texts:
        scene.tick()
    assert executed(texts, "WITH w AS") == 1
    assert moved_by(run) == {"a": "succeed", "b": "schedule_and_queue", "c": "schedule_and_queue"}
    after = scene.task(run, "b")
    assert (after.state, after.fence) == ("queued", before.fence + 1)
    assert after.scheduled_when == after.queued_when == scene.now
    assert after.queued_by_job_id == scene.job.pk
    assert scene.handed() == ["a", "b", "c"]


def test_what_gets_no_slot_is_written_as_scheduled(scene: Scene) -> None:
    scene.pool("narrow", 1)
    run = scene.run(scene.dag("a >> [b, c, d]", tasks={"c": {"pool": "narrow"}, "d": {"pool": "narrow"}}))
    ended(scene, run, "a")
    scene.tick()
    assert scene.states(run) == {"a": "success", "b": "queued", "c": "queued", "d": "scheduled"}
    assert moved_by(run)["d"] == "schedule"
    assert scene.task(run, "d").scheduled_when == scene.now


@pytest.mark.parametrize("why", ["the executor is full", "another scheduler admits"])
def test_without_an_admission_all_are_written_as_scheduled(scene: Scene, why: str) -> None:
    run = scene.run("a >> [b, c]")
    ended(scene, run, "a")
    tick = scene.a_tick()
    if why == "the executor is full":
        scene.executor.slots = 0
        scene.loop.tick(tick)
    else:
        with somebody_holds(ADMISSION):
            scene.loop.tick(tick)
    assert scene.states(run) == {"a": "success", "b": "scheduled", "c": "scheduled"}
    assert tick.again == (why == "another scheduler admits")


def test_I4_what_lies_behind_a_full_page_goes_before_what_was_found_ready_just_now(scene: Scene) -> None:
    """Two rows that a full pool refuses make the page; one behind them has a higher priority than the new one."""
    scene.pool("none", 0)
    scene.pool("one", 1)
    run = scene.run(scene.dag("a >> b", tasks={"b": {"pool": "one"}}))
    ended(scene, run, "a")
    wide = scene.dag(parallel(2, "wide", tasks={"*": {"pool": "none", "priority_weight": 9}}))
    high = scene.dag(shape("x", "high", tasks={"x": {"pool": "one", "priority_weight": 5}}))
    scene.run(wide)
    first = scene.run(high)
    scene.executor.slots, slots = 0, scene.executor.slots
    DagRun.objects.filter(pk=run.pk).update(held_at=scene.now)
    scene.phase("start_runs", "schedule_tasks")
    DagRun.objects.filter(pk=run.pk).update(held_at=None)
    assert scene.counts(dag_id__in=["wide", "high"]) == {"scheduled": 3}
    Wake.objects.add([run.pk], "test", scene.now)
    scene.executor.slots, scene.limit = slots, 2
    scene.tick()
    assert (scene.task(first, "x").state, scene.task(run, "b").state) == ("queued", "scheduled")


def test_a_ready_row_that_fails_for_ever_fails_at_once(scene: Scene) -> None:
    scene.pool("narrow", 1)
    run = scene.run(scene.dag("a >> b", tasks={"b": {"pool": "narrow", "pool_slots": 2}}))
    ended(scene, run, "a")
    scene.tick()
    assert scene.task(run, "b").state == "failed"


def test_an_admission_that_is_taken_back_hands_nothing_out(scene: Scene) -> None:
    run = scene.run("a >> b")
    ended(scene, run, "a")
    queue = next(phase for phase in PHASES if phase.name == "queue_tasks")
    seen: list[Tick] = []

    def breaks(tick: Tick) -> int:
        queue.run(tick)
        seen.append(tick)
        assert [one.hand_out.ti_id for one in tick.queued] == [scene.task(run, "b").pk]
        raise ValueError("after its work")

    phases = tuple(replace(phase, run=breaks) if phase.name == "queue_tasks" else phase for phase in PHASES)
    Loop(phases, monotonic=scene.loop.monotonic).tick(scene.a_tick())
    assert scene.states(run) == {"a": "success", "b": "scheduled"}
    assert (len(seen), seen[-1].queued, seen[-1].ready) == (2, [], [])
    assert scene.handed() == ["a"]


@pytest.mark.parametrize("seed", range(12))
def test_both_ways_decide_alike(scene: Scene, seed: int) -> None:
    """The same rows, looked at and admitted in one transaction and in two: the same states."""
    rng = random.Random(seed)
    pools = {name: scene.pool(name, rng.randint(0, 3)).pool for name in ("p", "q")}
    tasks = {
        name: {"pool": rng.choice([*pools, "default_pool"]), "pool_slots": rng.randint(1, 2), "priority_weight": weight}
        for name in "bcdefg"
        if (weight := rng.randint(1, 3))
    }
    limits = {"max_active_tasks": rng.randint(1, 6)}
    runs = [scene.run(scene.dag("a >> [b, c, d, e, f, g]", f"dag{n}", tasks=tasks, **limits)) for n in range(2)]
    for run in runs:
        ended(scene, run, "a")
    scene.executor.slots = rng.randint(1, 9)
    found = []
    for phases in (PHASES, tuple(replace(phase, joins=False) for phase in PHASES)):
        with contextlib.suppress(KeyError), db.atomic():
            Loop(phases, monotonic=scene.loop.monotonic).tick(scene.a_tick())
            found.append([scene.states(run) for run in runs])
            raise KeyError("take it back")
    assert found[0] == found[1]


def test_the_outbox_is_not_read_for_what_this_pass_has_queued(scene: Scene) -> None:
    runs = scene.runs(scene.dag("a >> b", max_active_runs=99), 3)
    for run in runs:
        ended(scene, run, "a")
        with said() as texts:
            scene.tick()
        assert executed(texts, "SELECT queued_when, id, fence") == 0
    assert scene.handed() == [*"aaabbb"]
