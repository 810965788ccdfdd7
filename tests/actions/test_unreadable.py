"""What people can do to a DAG whose definition cannot be read: what needs none is done, the rest refused in words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app.access import system
from scheduler_app.actions import backfills, clear, errors, runs, selection, trigger
from scheduler_app.models import Backfill, DagModel, DagRun, DagVersion, graphs
from tests.scheduler.scene import Scene

ANN = system("person", "ann")


@pytest.fixture
def scene(db: None) -> Scene:
    return Scene()


@pytest.fixture
def run(scene: Scene):
    found = scene.run("a >> b")
    scene.settle()
    DagVersion.objects.update(document={"schema_version": 999})
    graphs.forget()
    return found


def test_a_task_is_cleared_and_a_run_is_marked(scene: Scene, run) -> None:
    clear.clear(ANN, selection.Wanted("dag", tasks=["a"], runs=[run.run_id]), scene.now)
    assert scene.states(run) == {"a": None, "b": None}
    assert runs.mark_run(ANN, "dag", run.run_id, "failed", scene.now).state == "failed"
    assert scene.states(run) == {"a": "skipped", "b": "skipped"}


def test_what_comes_after_a_task_is_not_known(scene: Scene, run) -> None:
    wanted = selection.Wanted("dag", tasks=["a"], runs=[run.run_id], downstream=True)
    with pytest.raises(errors.Refused, match=r"cannot be read: .*newer version"):
        clear.clear(ANN, wanted, scene.now)
    assert scene.states(run) == {"a": "queued", "b": None}


def test_it_is_not_triggered(scene: Scene, run) -> None:
    with pytest.raises(errors.Refused, match="cannot be read"):
        trigger.trigger_run(ANN, "dag", scene.now, run_id="again")


def test_nothing_is_made_by_a_schedule_that_cannot_be_read(scene: Scene) -> None:
    scene.dag("a >> b")
    DagModel.objects.update(timetable={"kind": "of a plugin that is gone"})
    past = backfills.Wanted("dag", scene.now - timedelta(days=2), scene.now - timedelta(days=1))
    for asked in (
        lambda: backfills.create(ANN, past, scene.now),
        lambda: backfills.preview(ANN, past, scene.now),
        lambda: trigger.trigger_run(ANN, "dag", scene.now, run_id="dated", logical_date=scene.now),
    ):
        with pytest.raises(errors.Refused, match="The schedule of the DAG dag cannot be read: Unknown timetable kind"):
            asked()
    assert (Backfill.objects.count(), DagRun.objects.count()) == (0, 0)
