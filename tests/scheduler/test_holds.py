"""Holds as the loop keeps them; tests/scheduler/test_races.py has them against a loop that works at that moment."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app.access import system
from scheduler_app.actions import hold
from scheduler_app.models import DagRun, schedules
from tests.scheduler.scene import Scene

ANN = system("person", "ann")


@pytest.mark.parametrize("ends", ["by itself", "by a person"])
def test_a_dag_that_is_held_gets_no_new_runs_until_the_hold_ends(scene: Scene, ends: str) -> None:
    """Its runs go on meanwhile, and a run by hand may be made."""
    document = {"kind": "cron_trigger", "expression": "* * * * *"}
    dag = scene.dag("a", timetable=document, row={"start_date": scene.now, "timetable": document})
    schedules.plan_next(dag, scene.now)
    dag.save()
    until = scene.now + timedelta(minutes=5) if ends == "by itself" else None
    hold.hold_new_runs(ANN, "dag", scene.now, why="the source is down", until=until)
    run = scene.run(dag)
    for _ in range(4):
        scene.wait(60)
        scene.settle()
    assert list(DagRun.objects.values_list("run_id", "state")) == [(run.run_id, "running")]
    assert scene.states(run) == {"a": "queued"}
    if ends == "by a person":
        hold.release_new_runs(ANN, "dag", scene.now)
    scene.wait(60)
    scene.settle()
    assert DagRun.objects.filter(run_type="scheduled").count() == 1


@pytest.mark.parametrize("what", ["run", "task"])
def test_a_hold_with_an_end_is_over_by_itself_at_that_time(scene: Scene, what: str) -> None:
    run = scene.run("a >> b")
    scene.settle()
    until = scene.now + timedelta(seconds=90)
    if what == "run":
        hold.hold_run(ANN, "dag", run.run_id, scene.now, why="until noon", until=until)
    else:
        hold.hold_task(ANN, "dag", run.run_id, "a", scene.now, why="until noon", until=until)
    scene.wait(89)
    scene.settle()
    assert scene.states(run)["a"] == "scheduled"
    scene.wait(1)
    scene.settle()
    assert scene.states(run)["a"] == "queued"
