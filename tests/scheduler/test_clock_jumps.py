"""The database's clock is set by hours, back or forward: nothing runs twice, nobody who lives counts as dead, and who
is dead does not live on."""

from __future__ import annotations

import itertools
import threading
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from scheduler_app.models import DagRun, Job, TaskInstance, schedules
from scheduler_app.scheduler import loop, process
from scheduler_app.scheduler.loop import Loop
from scheduler_app.scheduler.process import Bell, Options, SchedulerProcess
from tests.scheduler.scene import Scene
from tests.shapes import parallel

HOURS = [timedelta(hours=3), timedelta(hours=-3)]


class NoSleep(Bell):
    def wait(self, seconds: float, files: Any, stopping: threading.Event) -> list[int]:
        return []


class World:
    """A scheduler's process whose two clocks are ours: the database's, and the one that nobody can set."""

    def __init__(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        self.scene, self.monotonic = scene, 0.0
        monkeypatch.setattr(process, "probe", lambda: loop.probe(scene.now))
        scene.set(idle_poll_seconds=0.01)
        self.scheduler = SchedulerProcess(scene.conf, Options(idle_sleep_seconds=0.0), scene.executors)
        self.scheduler.bell.close()
        self.scheduler.bell = NoSleep()
        self.scheduler.loop = Loop(monotonic=lambda: self.monotonic)

    def passes(self, seconds: float = 0.0, *, jump: timedelta = timedelta()) -> None:
        """So much time passes by both clocks, then one of them is set."""
        self.monotonic += seconds
        self.scene.now += timedelta(seconds=seconds) + jump
        self.scheduler._pass(SimpleNamespace(job_id=self.scene.job.pk), self.scene.executors)  # type: ignore[arg-type]


@pytest.fixture
def world(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(scene, monkeypatch)


def beat(scene: Scene, *tasks: TaskInstance) -> None:
    TaskInstance.objects.filter(pk__in=[task.pk for task in tasks]).update(heartbeat_at=scene.now)
    Job.objects.filter(pk=scene.job.pk).update(latest_heartbeat=scene.now)


@pytest.mark.parametrize("jump", HOURS, ids=["forward", "back"])
def test_who_lives_goes_on_and_who_is_dead_is_found_in_the_new_time(
    world: World, scene: Scene, jump: timedelta
) -> None:
    run = scene.run(scene.dag(parallel(2)))
    world.passes()
    alive, dead = scene.task(run, "p0"), scene.task(run, "p1")
    scene.begin(alive, dead)
    world.passes(1)
    world.passes(15, jump=jump)  # the phases that judge are due
    assert scene.states(run) == {"p0": "running", "p1": "running"}
    for _ in range(14):
        beat(scene, alive)
        world.passes(5)
    assert scene.states(run) == {"p0": "running", "p1": "failed"}
    assert "was silent" in (scene.task(run, "p1").reason or "")
    assert scene.end(alive) == 1
    assert scene.end(dead) == 0


@pytest.mark.parametrize("jump", HOURS, ids=["forward", "back"])
def test_a_neighbour_that_died_is_buried_in_the_new_time_and_its_hand_outs_go_on(
    world: World, scene: Scene, jump: timedelta
) -> None:
    run = scene.run("a")
    neighbour = scene.new_job()
    scene.phase("start_runs", "schedule_tasks")
    scene.phase("queue_tasks", job=neighbour)
    world.passes()
    world.passes(15, jump=jump)  # the phases that judge are due
    neighbour.refresh_from_db()
    assert (neighbour.state, scene.states(run)) == ("running", {"a": "queued"})
    for _ in range(10):
        beat(scene)
        world.passes(5)
    neighbour.refresh_from_db()
    assert neighbour.state == "failed"
    assert Job.objects.get(pk=scene.job.pk).state == "running"
    assert TaskInstance.objects.get(dag_run=run).queued_by_job_id == scene.job.pk


def test_I6_a_clock_that_goes_back_and_forth_makes_no_slot_twice(world: World, scene: Scene) -> None:
    document = {"kind": "cron_trigger", "expression": "*/10 * * * *"}
    dag = scene.dag("a", timetable=document, max_active_runs=1000, row={"start_date": scene.now, "catchup": True})
    schedules.plan_next(dag, scene.now)
    dag.save()

    def slots() -> list[Any]:
        return list(DagRun.objects.order_by("run_after").values_list("run_after", flat=True))

    for _ in range(6):
        world.passes(600)
    before = slots()
    world.passes(1, jump=timedelta(hours=-3))
    world.passes(600)
    assert slots() == before
    world.passes(1, jump=timedelta(hours=3))
    for _ in range(3):
        world.passes(600)
    made = slots()
    assert len(made) == len(set(made)) > len(before)
    assert all(later - earlier == timedelta(minutes=10) for earlier, later in itertools.pairwise(made))
