"""What an executor of this process knows is stamped together, later, and takes no slot twice (ADR 8)."""

from __future__ import annotations

import pytest

from scheduler_app.executors.base import HandOut
from scheduler_app.models import DagRun, TaskInstance
from scheduler_app.scheduler.phases import publish
from tests.scheduler.scene import Ledger, Scene
from tests.shapes import parallel


class Knowing(Ledger):
    """As the local executor: it remembers what it took, and counts it itself."""

    def slots_available(self) -> int:
        return self.slots - len(self.handed)

    def knows(self, hand_out: HandOut) -> bool:
        return hand_out in self.handed


@pytest.fixture
def scene(db: None) -> Scene:
    scene = Scene()
    scene.executor = Knowing(10_000)
    scene.executors = {scene.executor.name: scene.executor}
    return scene


def waiting(scene: Scene, tasks: int) -> int:
    """So many tasks are handed out and do not begin; how many of them are stamped after two more passes."""
    scene.run(scene.dag(parallel(tasks, max_active_tasks=999)))
    scene.settle()
    assert len(scene.executor.handed) == tasks
    scene.tick(2)
    return TaskInstance.objects.filter(handed_out_at__isnull=False).count()


def test_a_few_that_wait_are_stamped_when_a_second_has_passed(scene: Scene) -> None:
    assert waiting(scene, 3) == 0
    scene.wait(0.9)
    scene.tick()
    assert TaskInstance.objects.filter(handed_out_at__isnull=False).count() == 0
    scene.wait(0.1)
    scene.tick()
    assert TaskInstance.objects.filter(handed_out_at=scene.now).count() == 3
    assert len(scene.executor.handed) == 3


def test_many_that_wait_are_stamped_at_once(scene: Scene) -> None:
    assert waiting(scene, publish._MANY) == publish._MANY
    assert len(scene.executor.handed) == publish._MANY


def test_what_waits_without_a_stamp_takes_one_slot_not_two(scene: Scene) -> None:
    scene.executor.slots = 10
    assert waiting(scene, 6) == 0
    scene.run(scene.dag(parallel(6, "more")))
    scene.settle()
    assert len(scene.executor.handed) == 10


def test_what_the_executor_has_still_to_be_told_of_takes_its_slot(scene: Scene) -> None:
    scene.executor.slots, scene.executor.refuses = 4, True
    scene.run(scene.dag(parallel(6)))
    scene.settle()
    assert scene.counts() == {"queued": 4, "scheduled": 2}


def one_at_a_time(scene: Scene, count: int) -> None:
    """So many tasks are queued, each in a pass of its own, and handed over in it."""
    dag = scene.dag("a", "single", max_active_runs=999)
    before = len(scene.executor.handed)
    for number in range(count):
        scene.runs(dag, 1, prefix=f"n{DagRun.objects.count()}_")
        scene.tick()
        assert len(scene.executor.handed) == before + number + 1


def stamped(scene: Scene) -> int:
    return TaskInstance.objects.filter(handed_out_at__isnull=False).count()


def test_what_is_handed_over_as_it_is_queued_is_stamped_when_there_are_many(scene: Scene) -> None:
    one_at_a_time(scene, publish._MANY)
    assert stamped(scene) == 0
    one_at_a_time(scene, 2)
    assert stamped(scene) >= publish._MANY


def test_what_is_handed_over_as_it_is_queued_keeps_nothing_back_that_waits(scene: Scene) -> None:
    """What came into the outbox by another way is found within a second, also while every pass queues something."""
    one_at_a_time(scene, 2)
    first = scene.executor.handed.pop()  # nobody knows of it any more
    one_at_a_time(scene, 1)
    assert first not in scene.executor.handed
    scene.wait(1)
    scene.runs(scene.dag("a", "later"), 1)
    scene.tick()
    assert first in scene.executor.handed


def test_after_a_refusal_the_outbox_is_read_again(scene: Scene) -> None:
    one_at_a_time(scene, 2)
    scene.executor.refuses = True
    scene.runs(scene.dag("a", "refused"), 1)
    scene.tick()
    scene.executor.refuses = False
    scene.runs(scene.dag("a", "more"), 1)
    scene.tick()
    assert len(scene.executor.handed) == 4
