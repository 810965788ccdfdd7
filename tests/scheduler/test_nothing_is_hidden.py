"""SQL drops only what one limit surely refuses: after an admission, no row that is left could have had a slot (I4)."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from scheduler_app.engine.admission import Room, refuse
from scheduler_app.models import Limit, Pool, TaskInstance, db
from scheduler_app.scheduler.admission_pages import _COLUMNS, Pages, _ready
from scheduler_app.scheduler.phases import queue_tasks
from tests.scheduler.scene import Ledger, Scene
from tests.shapes import parallel

LIMITS = {"db": (4, None), "crm": (3, 60.0), "shut": (0, None), "bulk": (9, 10.0)}
NAMES = (*LIMITS, "nowhere")


def task(rng: random.Random) -> dict[str, Any]:
    names = sorted(rng.sample(NAMES, rng.choice([0, 0, 1, 2])))
    return {
        "pool": rng.choice(["default_pool", "small", "small"]),
        "pool_slots": rng.choice([1, 1, 1, 2]),
        "priority_weight": rng.randrange(4),
        "executor": rng.choice([None, None, "Other"]),
        "max_active_tis_per_dag": rng.choice([None, None, 1]),
        "max_active_tis_per_dagrun": rng.choice([None, None, 1]),
        "limits": tuple({"name": name, "units": rng.choice([1, 1, 2])} for name in names),
    }


def build(scene: Scene, rng: random.Random) -> None:
    scene.set(priority_ageing_seconds=rng.choice([0.0, 0.0, 3.0]))
    scene.set(wide_task_wait_seconds=1e6)  # what is kept for a wide task is refused on purpose
    scene.pool("small", rng.choice([1, 4, 12]))
    for name, (amount, window) in LIMITS.items():
        Limit.objects.create(name=name, amount=amount, per_seconds=window)
    scene.executors["Other"] = Ledger(rng.choice([0, 2, 30]), "Other")
    scene.executor.slots = rng.choice([5, 100])
    for number in range(5):
        tasks = {f"p{n}": task(rng) for n in range(30)}
        dag = scene.dag(parallel(30, f"d{number}", tasks=tasks, max_active_tasks=rng.choice([2, 10, 99])))
        scene.runs(dag, rng.choice([1, 2]))
        scene.wait(5)
    scene.limit = 512
    scene.phase("start_runs", "schedule_tasks")


def hand_out_all(scene: Scene) -> None:
    """Passes while the head of the order is admitted whole, as the loop makes them."""
    while scene.phase("queue_tasks"):
        pass


def still_admissible(scene: Scene, room: Room, free: dict[str | None, int]) -> list[int]:
    """Rows that are left and that the engine would let go, at the counts of this moment."""
    room.executors = free
    pages = Pages(room, scene.a_tick(), [])
    left = _ready(db.fetch(f"SELECT {_COLUMNS} FROM scheduler_task_instance WHERE state = 'scheduled'"))
    limits = pages._limits({row.run_id for row in left})
    return [row.id for row in left if refuse(pages._candidate(row, limits[row.run_id]), room) is None]


@pytest.mark.parametrize("seed", range(16))
def test_no_row_that_is_left_could_have_had_a_slot(scene: Scene, seed: int) -> None:
    rng = random.Random(seed)
    build(scene, rng)
    for _ in range(3):
        scene.limit = rng.choice([1, 4, 32])
        before = {None: scene.executor.slots, "Other": scene.executors["Other"].slots_available()}
        hand_out_all(scene)
        tick = scene.a_tick()
        room = queue_tasks._room(tick, queue_tasks._in_use(tick), {"Ledger": 0, "Other": 0})
        queued = TaskInstance.objects.filter(state="queued", queued_when=scene.now).values_list("executor", flat=True)
        handed = Counter(queued)
        free = {name: count - handed[name] for name, count in before.items()}
        assert min(free.values()) >= 0
        assert still_admissible(scene, room, free) == []
        assert Pool.objects.use()["small"].open_slots >= 0
        scene.phase("publish")
        running = list(TaskInstance.objects.filter(state="queued").order_by("pk")[:20])
        scene.begin(*running)
        scene.end(*running)
        scene.phase("schedule_tasks")
        scene.wait(rng.choice([3, 61]))
