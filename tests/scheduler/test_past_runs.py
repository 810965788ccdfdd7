"""A run that waits for an older one (``depends_on_past``) does not keep that one from starting."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app import access
from scheduler_app.actions import clear, hold, selection
from scheduler_app.models import DagModel, DagRun
from tests import rows
from tests.scheduler.scene import Scene
from tests.shapes import shape

ACTOR = access.system("person", "ada")


def chained(scene: Scene, count: int, max_active_runs: int, text: str = "t >> u") -> list[DagRun]:
    """Queued runs of which each waits for the one before; they are a day and a second apart."""
    dag = scene.dag(shape(text, max_active_runs=max_active_runs, tasks={"t": {"depends_on_past": True}}))
    made = scene.runs(dag, count)
    for number, run in enumerate(made):
        DagRun.objects.filter(pk=run.pk).update(logical_date=rows.T0 - timedelta(days=count - number))
    return made


def run_again(scene: Scene, run: DagRun) -> None:
    clear.clear(ACTOR, selection.Wanted(run.dag_id, runs=[run.run_id]), scene.now)


def states(scene: Scene) -> list[str]:
    return scene.run_states(DagModel.objects.get())


def end_next(scene: Scene, run: DagRun, task_id: str, state: str = "success") -> None:
    scene.begin(scene.task(run, task_id))
    scene.end(scene.task(run, task_id), state=state)
    scene.settle()


def test_a_run_that_waits_for_one_that_was_cleared_makes_way_for_it(scene: Scene) -> None:
    first, second = chained(scene, 2, 1)
    scene.settle()
    end_next(scene, first, "t", "failed")
    assert states(scene) == ["failed", "running"]
    assert scene.task(second, "t").state is None
    run_again(scene, first)
    scene.settle()
    assert states(scene) == ["running", "queued"]
    second.refresh_from_db()
    assert second.state_reason == "It made way for run0, which its tasks wait for (depends_on_past)."
    scene.play(first)
    scene.play(second)
    assert states(scene) == ["success", "success"]
    second.refresh_from_db()
    assert (second.first_start_date, second.state_reason[:10]) == (rows.T0, "Every task")


def test_all_that_wait_make_way_when_the_limit_was_lowered(scene: Scene) -> None:
    made = chained(scene, 4, 4)
    scene.settle()
    end_next(scene, made[0], "t", "failed")
    DagModel.objects.update(max_active_runs=1)
    assert states(scene) == ["failed", "running", "running", "running"]
    run_again(scene, made[0])
    scene.settle()
    assert states(scene) == ["running", "queued", "queued", "queued"]
    for run in made:
        scene.play(run)
    assert states(scene) == ["success"] * 4


def test_a_run_in_which_something_moves_goes_on(scene: Scene) -> None:
    first, second = chained(scene, 2, 1, "t; other")
    scene.settle()
    scene.begin(scene.task(first, "other"))
    scene.end(scene.task(first, "other"))
    end_next(scene, first, "t", "failed")
    scene.begin(scene.task(second, "other"))
    run_again(scene, first)
    scene.settle()
    assert states(scene) == ["queued", "running"]
    scene.end(scene.task(second, "other"))
    scene.settle()
    assert states(scene) == ["running", "queued"]
    assert scene.states(second) == {"other": "success", "t": None}


def test_a_run_makes_no_way_for_one_that_could_not_start(scene: Scene) -> None:
    first, _ = chained(scene, 2, 1)
    scene.settle()
    end_next(scene, first, "t", "failed")
    hold.hold_run(ACTOR, "dag", first.run_id, scene.now, why="not yet")
    run_again(scene, first)
    scene.settle()
    assert states(scene) == ["queued", "running"]
    hold.release_run(ACTOR, "dag", first.run_id, scene.now)
    scene.settle()
    assert states(scene) == ["running", "queued"]


@pytest.mark.parametrize("limit", [2, 16])
def test_a_run_makes_no_way_where_there_is_room(scene: Scene, limit: int) -> None:
    first, second = chained(scene, 2, limit)
    scene.settle()
    end_next(scene, first, "t", "failed")
    run_again(scene, first)
    scene.settle()
    assert states(scene) == ["running", "running"]
    second.refresh_from_db()
    assert second.moved_by == "start"


def test_a_run_makes_no_way_for_one_that_would_start_after_it(scene: Scene) -> None:
    first, second = chained(scene, 2, 1)
    DagRun.objects.filter(pk=first.pk).update(run_after=scene.now)
    scene.settle()
    assert (states(scene), scene.task(second, "t").state) == (["running", "queued"], None)
    assert DagRun.objects.get(pk=second.pk).state == "running"
