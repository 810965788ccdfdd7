"""A run that takes too long: what becomes of its tasks, and that what was set up is torn down (F-19)."""

from __future__ import annotations

import pytest

from scheduler_app.models import Callback, DagModel, DagRun
from tests.scheduler.scene import Scene
from tests.shapes import shape

SETUP = {
    "up": {"is_setup": True},
    "down": {"is_teardown": True, "trigger_rule": "all_done_setup_success"},
}


def a_run(scene: Scene, text: str = "up >> work >> down", **fields: object) -> DagRun:
    dag = shape(f"{text}; up >> down", dagrun_timeout=60.0, tasks=SETUP, **fields)
    return scene.run(scene.dag(dag))


def ended(scene: Scene, run: DagRun) -> tuple[str, str | None]:
    run.refresh_from_db()
    return run.state, run.state_reason


def begin_work(scene: Scene, run: DagRun) -> None:
    scene.tick()
    scene.begin(scene.task(run, "up"))
    scene.end(scene.task(run, "up"))
    scene.tick()
    scene.begin(scene.task(run, "work"))


def test_F_19_what_was_set_up_is_torn_down_and_then_the_run_fails(scene: Scene) -> None:
    run = a_run(scene)
    begin_work(scene, run)
    scene.wait(60)
    scene.settle()
    assert scene.states(run) == {"up": "success", "work": "skipped", "down": "queued"}
    reason = "The run took longer than its dagrun_timeout of 60 s."
    assert ended(scene, run) == ("running", f"{reason} Its teardowns run to their end.")
    scene.begin(scene.task(run, "down"))
    scene.end(scene.task(run, "down"))
    scene.settle()
    assert scene.states(run)["down"] == "success"
    assert ended(scene, run) == ("failed", reason)


def test_F_19_a_teardown_has_as_long_as_the_run_had(scene: Scene) -> None:
    run = a_run(scene)
    begin_work(scene, run)
    scene.wait(60)
    scene.settle()
    scene.begin(scene.task(run, "down"))
    scene.wait(59)
    scene.settle()
    assert scene.states(run)["down"] == "running"
    scene.wait(1)
    scene.settle()
    assert scene.states(run)["down"] == "skipped"
    assert ended(scene, run)[0] == "failed"


def test_F_19_a_teardown_with_nothing_to_tear_down_is_skipped(scene: Scene) -> None:
    run = a_run(scene)
    scene.tick()
    scene.begin(scene.task(run, "up"))
    scene.wait(60)
    scene.settle()
    assert scene.states(run) == {"up": "skipped", "work": "skipped", "down": "skipped"}
    assert ended(scene, run)[0] == "failed"


def test_F_19_a_teardown_that_waits_for_an_unpause_is_cut_short_in_the_end(scene: Scene) -> None:
    run = a_run(scene)
    begin_work(scene, run)
    DagModel.objects.update(is_paused=True)
    scene.wait(60)
    scene.settle()
    assert scene.states(run)["down"] is None
    scene.wait(60)
    scene.settle()
    assert scene.states(run)["down"] == "skipped"
    assert ended(scene, run)[0] == "failed"


def test_F_19_a_run_that_is_cleared_has_its_whole_time_again(scene: Scene) -> None:
    from scheduler_app.models import transitions

    run = a_run(scene)
    begin_work(scene, run)
    scene.wait(60)
    scene.settle()
    scene.begin(scene.task(run, "down"))
    scene.end(scene.task(run, "down"))
    scene.settle()
    keys = [scene.task(run, name).pk for name in ("up", "work", "down")]
    transitions.tasks("clear", keys, scene.now)
    transitions.runs("clear", [run.pk], scene.now)
    scene.play(run)
    assert ended(scene, run)[0] == "success"


@pytest.mark.parametrize(("setting", "state"), [("skipped", "skipped"), ("failed", "failed")])
def test_F_19_running_tasks_end_as_the_setting_says(scene: Scene, setting: str, state: str) -> None:
    scene.set(timed_out_running_tasks=setting)
    tasks = {"a": {"callbacks": ("failure",), "retries": 3}}
    run = scene.run(scene.dag(shape("a >> b; c", dagrun_timeout=60.0, tasks=tasks)))
    scene.tick()
    scene.begin(scene.task(run, "a"))
    scene.wait(60)
    scene.settle()
    assert scene.states(run) == {"a": state, "b": "skipped", "c": "skipped"}
    assert scene.task(run, "a").reason == "The run took longer than its dagrun_timeout of 60 s."
    asked = list(Callback.objects.values_list("kind", flat=True))
    assert asked == (["task_failure"] if state == "failed" else [])
    assert scene.end(scene.task(run, "a")) == 0


def test_F_19_a_queued_run_does_not_time_out_its_time_begins_with_its_start(scene: Scene) -> None:
    dag = scene.dag(shape("a", max_active_runs=1, dagrun_timeout=60.0))
    first, second = scene.runs(dag, 2)
    scene.tick()
    scene.wait(59)
    scene.begin(scene.task(first, "a"))
    scene.end(scene.task(first, "a"))
    scene.settle()
    scene.wait(59)
    scene.settle()
    assert (ended(scene, first)[0], ended(scene, second)[0]) == ("success", "running")
    scene.wait(1)
    scene.settle()
    assert ended(scene, second)[0] == "failed"
