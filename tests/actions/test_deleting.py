"""Task instances that are deleted: a run that goes on makes them anew, so nothing waits for what is not there."""

from __future__ import annotations

import pytest

from scheduler_app.access import system
from scheduler_app.actions import clear, runs, selection, task_instances
from scheduler_app.models import Audit, TaskInstance
from tests.scheduler.scene import Scene
from tests.scheduler.test_isolation import unreadable

ANN = system("person", "ann")


@pytest.fixture
def scene(db: None) -> Scene:
    return Scene()


def delete(scene: Scene, run, *tasks: str) -> int:
    return task_instances.delete(ANN, selection.Wanted("dag", tasks=tasks, runs=[run.run_id]), scene.now)


def done(scene: Scene, run, task_id: str) -> None:
    scene.settle()
    task = scene.task(run, task_id)
    assert scene.begin(task) == 1
    assert scene.end(task) == 1
    scene.settle()


def test_a_run_that_goes_on_makes_a_deleted_task_instance_anew(scene: Scene) -> None:
    run = scene.run("a >> b")
    done(scene, run, "a")
    old = scene.task(run, "a").pk
    assert delete(scene, run, "a") == 1
    assert scene.states(run) == {"b": "queued"}
    scene.tick()
    assert scene.task(run, "a").pk != old
    done(scene, run, "a")
    done(scene, run, "b")
    run.refresh_from_db()
    assert (run.state, scene.states(run)) == ("success", {"a": "success", "b": "success"})


def test_a_run_that_has_not_started_yet_makes_it_anew_too(scene: Scene) -> None:
    run = scene.run("a >> b")
    delete(scene, run, "a", "b")
    scene.phase("schedule_tasks")
    assert scene.states(run) == {"a": None, "b": None}


def test_what_is_deleted_while_the_run_cannot_be_looked_at_is_made_once_it_can(scene: Scene) -> None:
    run = scene.run("a >> b")
    done(scene, run, "a")
    with unreadable("dag"):
        task_instances.delete(ANN, selection.Wanted("dag", tasks=["a"], runs=[run.run_id]), scene.now)
        clear.clear(ANN, selection.Wanted("dag", tasks=["b"], runs=[run.run_id]), scene.now)
        scene.settle()
        assert scene.states(run) == {"b": None}
    scene.wait(60)
    done(scene, run, "a")
    done(scene, run, "b")
    run.refresh_from_db()
    assert (run.state, scene.states(run)) == ("success", {"a": "success", "b": "success"})


@pytest.mark.parametrize("how", ["clear", "queue again"])
def test_an_ended_run_makes_it_anew_once_it_goes_on(scene: Scene, how: str) -> None:
    run = scene.run("a >> b")
    done(scene, run, "a")
    done(scene, run, "b")
    delete(scene, run, "a")
    assert scene.states(run) == {"b": "success"}
    if how == "clear":
        clear.clear(ANN, selection.Wanted("dag", tasks=["b"], runs=[run.run_id]), scene.now)
    else:
        runs.mark_run(ANN, "dag", run.run_id, "queued", scene.now)
    done(scene, run, "a")
    if how == "clear":
        done(scene, run, "b")
    run.refresh_from_db()
    assert (run.state, scene.states(run)) == ("success", {"a": "success", "b": "success"})


@pytest.mark.parametrize("together", [False, True])
def test_a_cleared_run_without_task_instances_makes_them_anew_and_that_is_audited(scene: Scene, together: bool) -> None:
    run = scene.run("a")
    done(scene, run, "a")
    delete(scene, run, "a")
    before = Audit.objects.count()
    if together:
        runs.clear_runs(ANN, "dag", [run.run_id], scene.now)
    else:
        runs.clear_run(ANN, "dag", run.run_id, scene.now)
    assert list(Audit.objects.order_by("pk").values_list("event", "run_id")[before:]) == [("clear_dag_run", run.run_id)]
    done(scene, run, "a")
    run.refresh_from_db()
    assert (run.state, scene.states(run)) == ("success", {"a": "success"})


def test_a_mapped_task_that_has_other_instances_gets_none_without_an_index(scene: Scene) -> None:
    mapped = {"mapped": {"style": "expand", "inputs": {"x": {"literal": 2}}}}
    run = scene.run(scene.dag("m >> b", tasks={"m": mapped}))
    scene.executor.slots = 0
    scene.settle()
    wanted = selection.Wanted("dag", tasks=[("m", 1)], runs=[run.run_id])
    assert task_instances.delete(ANN, wanted, scene.now) == 1
    assert list(TaskInstance.objects.filter(task_id="m").values_list("map_index", flat=True)) == [0]
