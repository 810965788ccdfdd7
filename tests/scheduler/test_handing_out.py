"""What an executor of this process knows is stamped together, later, and takes no slot twice (ADR 8)."""

from __future__ import annotations

import pytest

from scheduler_app.executors.base import HandOut
from scheduler_app.models import TaskInstance
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
