"""Deadlines of runs and SLAs of tasks: missed when their time comes, once, whatever the run is doing then (F-25)."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from scheduler_app.models import Callback, DagModel, DagRun, Deadline, db, schedules, transitions
from scheduler_app.scheduler.phases import miss_deadlines
from tests.rows import at
from tests.scheduler.scene import Scene
from tests.shapes import shape

TEN_MINUTES = {"a": {"sla": 600.0}}
CALLBACK = {"path": "mail.tell", "kwargs": {"to": "ann"}, "sync": True}


def deadline(kind: str, seconds: float, **details: Any) -> dict[str, Any]:
    return {"reference": {"kind": kind, **details}, "interval": seconds, "callback": CALLBACK, "name": "soon"}


def hourly(scene: Scene, text: str = "a", *, catchup: bool = False, hours: int = 0, **fields: Any) -> DagModel:
    """An hourly DAG whose slot of 12:00 is due now (or that missed as many before it)."""
    timetable = {"kind": "cron_trigger", "expression": "0 * * * *"}
    dag = scene.dag(
        shape(text, timetable=timetable, has_sla=True, catchup=catchup, **fields),
        row={"start_date": scene.now - timedelta(hours=hours)},
    )
    schedules.plan_next(dag, scene.now)
    dag.save()
    scene.settle()
    return dag


def missed() -> list[tuple[str | None, Any]]:
    """(task, when that was seen) of every deadline that was missed."""
    return list(Deadline.objects.filter(missed_at__isnull=False).order_by("pk").values_list("task_id", "missed_at"))


def test_BC_95_S_48_a_task_misses_its_sla_on_time_while_its_run_goes_on(scene: Scene) -> None:
    hourly(scene, "a >> b", tasks=TEN_MINUTES, callbacks=("sla_miss",))
    run = DagRun.objects.get()
    scene.begin(scene.task(run, "a"))
    scene.wait(599)
    scene.settle()
    assert (missed(), Callback.objects.count()) == ([], 0)
    scene.wait(1)
    scene.settle()
    assert missed() == [("a", at(600))]
    callback = Callback.objects.get()
    assert (callback.kind, callback.dag_run_id) == ("sla_miss", run.pk)
    assert callback.payload["late"] == {
        "tasks": [{"task_id": "a", "due_at": at(600).isoformat()}],
        "blocking": [
            {"task_id": "a", "map_index": -1, "state": "running"},
            {"task_id": "b", "map_index": -1, "state": None},
        ],
    }
    scene.wait(60)
    scene.end(scene.task(run, "a"))
    scene.settle()
    assert (len(missed()), Callback.objects.count()) == (1, 1)


@pytest.mark.parametrize("state", ["success", "skipped"])
def test_a_task_that_is_done_in_time_misses_nothing(scene: Scene, state: str) -> None:
    hourly(scene, tasks=TEN_MINUTES, callbacks=("sla_miss",))
    scene.play(DagRun.objects.get(), a=state)
    scene.wait(601)
    scene.settle()
    assert not Deadline.objects.filter(due_at__lte=scene.now).exists()
    assert not Callback.objects.exists()


def test_a_task_that_was_done_too_late_while_nobody_looked_missed_its_sla(scene: Scene) -> None:
    hourly(scene, tasks=TEN_MINUTES)
    run = DagRun.objects.get()
    scene.begin(scene.task(run, "a"))
    scene.wait(700)
    scene.end(scene.task(run, "a"))
    scene.settle()
    assert missed() == [("a", at(700))]


def test_an_sla_without_a_callback_is_stored_and_asks_nobody(scene: Scene) -> None:
    hourly(scene, tasks=TEN_MINUTES)
    scene.wait(600)
    scene.settle()
    assert (len(missed()), Callback.objects.count()) == (1, 0)


def test_with_check_slas_off_no_run_has_an_sla(scene: Scene, settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "check_slas": False}
    hourly(scene, tasks=TEN_MINUTES)
    assert (DagRun.objects.count(), Deadline.objects.count()) == (1, 0)


def test_slas_that_a_run_misses_together_are_one_callback(scene: Scene) -> None:
    hourly(scene, "a; b", tasks={"*": {"sla": 60.0}}, callbacks=("sla_miss",))
    scene.wait(60)
    scene.settle()
    assert [one["task_id"] for one in Callback.objects.get().payload["late"]["tasks"]] == ["a", "b"]


def test_runs_that_are_caught_up_and_runs_by_hand_have_no_sla(scene: Scene) -> None:
    dag = hourly(scene, tasks=TEN_MINUTES, catchup=True, hours=3)
    scene.runs(dag, 1)
    assert DagRun.objects.count() == 5
    assert [due for (due,) in Deadline.objects.values_list("due_at")] == [at(600)]


@pytest.mark.parametrize(
    ("asked", "due"),
    [
        (deadline("dagrun_queued_at", 60), at(60)),
        (deadline("dagrun_logical_date", 60), at(-3540)),
        (deadline("fixed_datetime", 60, at=at(300).isoformat()), at(360)),
        (deadline("average_runtime", 60, max_runs=2, min_runs=2), at(100 + 30 + 60)),
    ],
)
def test_a_deadline_counts_from_what_it_names(scene: Scene, asked: dict[str, Any], due: Any) -> None:
    plain = scene.dag("a")
    for seconds in (20, 40):
        past = scene.runs(plain, 1, prefix=f"r{seconds}")[0]
        scene.settle()
        scene.wait(seconds)
        scene.play(past)
    scene.now = at(100) if asked["reference"]["kind"] == "average_runtime" else at(0)
    dag = scene.dag(shape("a", deadline=(asked,)))
    scene.runs(dag, 1, prefix="new", logical_date=at(-3600))
    assert Deadline.objects.get().due_at == due


def test_a_run_that_is_not_done_by_its_deadline_asks_for_its_callback_once(scene: Scene) -> None:
    run = scene.run(scene.dag(shape("a", deadline=(deadline("dagrun_queued_at", 60),))))
    scene.settle()
    scene.wait(60)
    with suppress(InterruptedError), db.atomic():
        miss_deadlines.run(scene.a_tick())
        raise InterruptedError  # killed before the commit: the miss is gone, and the callback with it
    assert (missed(), Callback.objects.count()) == ([], 0)
    scene.settle()
    row = Deadline.objects.get()
    callback = Callback.objects.get()
    assert (callback.kind, callback.dag_run_id, callback.dedupe_key) == ("deadline", run.pk, f"deadline:{row.pk}")
    late = {"id": row.pk, "name": "soon", "due_at": at(60).isoformat(), "callback": CALLBACK}
    assert callback.payload["late"] == late
    scene.wait(60)
    scene.settle()
    assert (len(missed()), Callback.objects.count()) == (1, 1)


@pytest.mark.parametrize(("state", "count"), [("success", 0), ("failed", 1)])
def test_a_run_is_done_when_it_has_succeeded(scene: Scene, state: str, count: int) -> None:
    run = scene.run(scene.dag(shape("a", deadline=(deadline("dagrun_queued_at", 60),))))
    scene.play(run, a=state)
    scene.wait(60)
    scene.settle()
    assert (len(missed()), Callback.objects.count(), Deadline.objects.count()) == (count, count, count)


def test_a_paused_dag_misses_its_deadlines_all_the_same(scene: Scene) -> None:
    scene.run(scene.dag(shape("a", deadline=(deadline("dagrun_queued_at", 60),))))
    DagModel.objects.update(is_paused=True)
    scene.wait(60)
    scene.settle()
    assert len(missed()) == 1


def test_a_task_that_left_the_dag_misses_nothing(scene: Scene) -> None:
    hourly(scene, "a; b", tasks=TEN_MINUTES)
    run = DagRun.objects.get()
    transitions.tasks("unqueue", [scene.task(run, "a").pk], scene.now)
    transitions.tasks("remove", [scene.task(run, "a").pk], scene.now)
    scene.wait(600)
    scene.settle()
    assert missed() == []
