"""Hand-outs that wait in a broker's queue for longer than the watchdog allows."""

from __future__ import annotations

import pytest

from scheduler_app.models import Job, TaskInstance
from scheduler_app.scheduler.phases.adopt_orphans import LOST_HAND_OUTS_LIMIT
from tests.scheduler.scene import Scene

pytestmark = pytest.mark.django_db


def worker(scene: Scene, queue: str) -> Job:
    return Job.objects.create(
        job_type="CeleryWorkerJob",
        start_date=scene.now,
        latest_heartbeat=scene.now,
        detail={"slots": 1, "queues": [queue]},
    )


def wait_for_the_watchdog(scene: Scene, living: Job) -> None:
    scene.wait(scene.conf.queued_timeout_seconds + 1)
    Job.objects.filter(pk=living.pk).update(latest_heartbeat=scene.now)


def test_a_hand_out_that_busy_workers_leave_waiting_is_handed_out_again_and_never_counts_as_lost() -> None:
    scene = Scene()
    busy = worker(scene, "default")
    run = scene.run("a")
    scene.phase("start_runs", "schedule_tasks", "queue_tasks", "publish")
    for _ in range(LOST_HAND_OUTS_LIMIT + 2):
        wait_for_the_watchdog(scene, busy)
        scene.phase("adopt_orphans", "publish")
    handed = [(hand_out.ti_id, hand_out.fence) for hand_out in scene.executor.handed]
    ti = TaskInstance.objects.get(dag_run=run)
    assert handed == [(ti.pk, 1)] * (LOST_HAND_OUTS_LIMIT + 3)
    assert (ti.state, ti.fence, ti.lost_hand_outs) == ("queued", 1, 0)
    assert ti.handed_out_at == scene.now


def test_a_hand_out_to_a_queue_that_nobody_serves_goes_back() -> None:
    scene = Scene()
    other = worker(scene, "other")
    run = scene.run("a")
    scene.phase("start_runs", "schedule_tasks", "queue_tasks", "publish")
    wait_for_the_watchdog(scene, other)
    scene.phase("adopt_orphans")
    ti = TaskInstance.objects.get(dag_run=run)
    assert (ti.state, ti.lost_hand_outs) == ("scheduled", 1)
