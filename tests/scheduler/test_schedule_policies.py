"""Missed slots, overlapping runs, jitter, and what decides a run: what a DAG says of its schedule besides when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.models import Audit, Callback, DagModel, DagRun, schedules, transitions
from tests.scheduler.scene import Scene
from tests.shapes import shape


def hour(number: int, minute: int = 0) -> datetime:
    return datetime(2026, 3, 1, number, minute, tzinfo=UTC)


def hourly(scene: Scene, tasks: str = "a", *, catchup: bool = False, **row: Any) -> DagModel:
    """An hourly DAG that exists since 6:00, of which one run may be under way; it is 12:00."""
    timetable = {"kind": "cron_trigger", "expression": "0 * * * *"}
    dag = scene.dag(
        shape(tasks, timetable=timetable, max_active_runs=1, catchup=catchup, callbacks=("failure",)),
        row={"start_date": hour(6), **row},
    )
    schedules.plan_next(dag, scene.now)
    dag.save()
    return dag


def runs() -> list[tuple[int, str]]:
    """(hour of the slot, state) of all runs."""
    rows = DagRun.objects.order_by("run_after").values_list("run_after", "state")
    return [(run_after.hour, state) for run_after, state in rows]


@pytest.mark.parametrize(
    ("policy", "limit", "made"),
    [("skip", None, []), ("latest", None, [12]), ("all", 3, [10, 11, 12]), ("all", None, [6, 7, 8, 9, 10, 11, 12])],
)
def test_missed_slots_are_made_as_the_dag_says(scene: Scene, policy: str, limit: int | None, made: list[int]) -> None:
    scene.wait(30 * 60)
    hourly(scene, misfire_policy=policy, misfire_limit=limit)
    for _ in range(9):
        scene.settle()
        for run in DagRun.objects.filter(state="running"):
            scene.play(run)
    assert [slot for slot, _ in runs()] == made


def test_a_slot_waits_for_the_run_before_it_by_default(scene: Scene) -> None:
    hourly(scene)
    scene.settle()
    scene.wait(3600)
    scene.settle()
    assert runs() == [(12, "running")]
    scene.play(DagRun.objects.get())
    scene.settle()
    assert runs() == [(12, "success"), (13, "running")]


def test_BC_131_a_slot_is_skipped_and_recorded_while_a_run_is_under_way(scene: Scene) -> None:
    hourly(scene, overlap_policy="skip")
    scene.settle()
    scene.wait(3600)
    scene.settle()
    assert runs() == [(12, "running")]
    audit = Audit.objects.get()
    assert (audit.event, audit.actor_kind, audit.dag_id) == ("skip_scheduled_run", "scheduler", "dag")
    assert audit.extra == {"slot": "2026-03-01T13:00:00+00:00", "logical_date": "2026-03-01T13:00:00+00:00"}
    assert audit.reason == "No run was made, because a run was under way (overlap_policy='skip')."
    scene.play(DagRun.objects.get())
    scene.wait(3600)
    scene.settle()
    assert (runs(), Audit.objects.count()) == ([(12, "success"), (14, "running")], 1)


def test_the_oldest_run_is_cancelled_for_the_next_one(scene: Scene) -> None:
    hourly(scene, overlap_policy="cancel_oldest")
    scene.settle()
    old = DagRun.objects.get()
    task = scene.task(old, "a")
    scene.begin(task)
    scene.wait(3600)
    scene.settle()
    assert runs() == [(12, "failed"), (13, "running")]
    old.refresh_from_db()
    reason = "Cancelled for the run of 2026-03-01 13:00:00 UTC (overlap_policy='cancel_oldest')."
    assert (old.state_reason, old.end_date) == (reason, scene.now)
    task.refresh_from_db()
    assert (task.state, task.reason, scene.end(task)) == ("skipped", reason, 0)
    assert list(Callback.objects.values_list("kind", "dag_run_id")) == [("dag_failure", old.pk)]
    audit = Audit.objects.get()
    assert (audit.event, audit.reason, audit.before["state"]) == ("cancel_dag_run", reason, "running")


def test_S_43_a_cancelled_run_leaves_no_task_without_an_end(scene: Scene) -> None:
    hourly(scene, "a >> b", overlap_policy="cancel_oldest")
    scene.settle()
    old = DagRun.objects.get()
    scene.begin(scene.task(old, "a"))
    assert scene.task(old, "b").state is None
    scene.wait(3600)
    scene.settle()
    assert scene.counts(dag_run=old) == {"skipped": 2}


def an_hourly_cluster(scene: Scene) -> DagRun:
    """The run of 12:00 of an hourly DAG of which the next slot takes the place; its cluster is up, and work goes on."""
    tasks = {"up": {"is_setup": True}, "down": {"is_teardown": True, "trigger_rule": "all_done_setup_success"}}
    scene.dag(
        shape(
            "up >> work >> down; up >> down",
            tasks=tasks,
            timetable={"kind": "cron_trigger", "expression": "0 * * * *"},
            max_active_runs=1,
            callbacks=("failure",),
        ),
        row={"start_date": hour(6), "overlap_policy": "cancel_oldest"},
    )
    dag = DagModel.objects.get()
    schedules.plan_next(dag, scene.now)
    dag.save()
    scene.settle()
    run = DagRun.objects.get()
    for name in ("up", "work"):
        scene.begin(scene.task(run, name))
        if name == "up":
            scene.end(scene.task(run, name))
            scene.settle()
    return run


def test_what_a_cancelled_run_set_up_is_torn_down_before_the_next_one_starts(scene: Scene) -> None:
    old = an_hourly_cluster(scene)
    scene.wait(3600)
    scene.settle()
    assert scene.states(old) == {"up": "success", "work": "skipped", "down": "queued"}
    assert runs() == [(12, "running"), (13, "queued")]
    reason = "Cancelled for the run of 2026-03-01 13:00:00 UTC (overlap_policy='cancel_oldest')."
    old.refresh_from_db()
    assert old.state_reason == f"{reason} Its teardowns run to their end."
    scene.begin(scene.task(old, "down"))
    scene.end(scene.task(old, "down"))
    scene.settle()
    assert runs() == [(12, "failed"), (13, "running")]
    old.refresh_from_db()
    assert old.state_reason == reason
    assert [(one.kind, one.payload["reason"]) for one in Callback.objects.all()] == [("dag_failure", "cancelled")]


def test_a_run_that_waits_for_teardowns_is_cancelled_for_the_next_slot(scene: Scene) -> None:
    old = an_hourly_cluster(scene)
    scene.wait(3600)
    scene.settle()
    scene.wait(3600)
    scene.settle()
    assert runs() == [(12, "running"), (13, "failed"), (14, "queued")]
    assert scene.states(old)["down"] == "queued"
    assert list(Audit.objects.order_by("pk").values_list("after__state", flat=True)) == ["running", "failed"]


def test_no_run_is_cancelled_for_a_slot_while_one_that_was_cut_short_makes_room(scene: Scene) -> None:
    an_hourly_cluster(scene)
    scene.wait(3600)
    scene.settle()
    transitions.runs("mark_failed", [DagRun.objects.get(state="queued").pk], scene.now)
    scene.wait(3600)
    scene.settle()
    assert runs() == [(12, "running"), (13, "failed"), (14, "queued")]
    assert Audit.objects.count() == 1


def test_a_jittered_slot_keeps_its_name_and_comes_later_by_its_own_time(scene: Scene) -> None:
    dag = hourly(scene, schedule_jitter=1800.0)
    due = schedules.next_slot(dag, scene.now)
    assert due is not None
    assert dag.next_dagrun_run_after == due.due == hour(12) + timedelta(seconds=due.delay_seconds)
    assert 0 < due.delay_seconds < 1800
    scene.wait(due.delay_seconds - 1)
    scene.settle()
    assert runs() == []
    scene.wait(1)
    scene.settle()
    run = DagRun.objects.get()
    assert (run.run_id, run.slot_key) == ("scheduled__2026-03-01T12:00:00+00:00", "2026-03-01T12:00:00+00:00")
    assert (run.run_after, run.logical_date) == (due.due, hour(12))


@pytest.mark.parametrize(("rule", "state"), [("leaves", "success"), ("any_failed", "failed")])
def test_BC_79_what_decides_a_run_is_the_dags_to_say(scene: Scene, rule: str, state: str) -> None:
    tasks = {"end": {"trigger_rule": "all_done"}}
    run = scene.run(scene.dag(shape("start >> middle >> end", tasks=tasks, run_state=rule)))
    scene.play(run, middle="failed")
    assert scene.states(run) == {"start": "success", "middle": "failed", "end": "success"}
    assert run.state == state


def test_BC_79_a_teardown_that_fails_decides_nothing_unless_it_asks_to(scene: Scene) -> None:
    tasks = {"clean": {"is_teardown": True, "trigger_rule": "all_done_setup_success"}}
    run = scene.run(scene.dag(shape("work >> clean", tasks=tasks, run_state="any_failed")))
    scene.play(run, clean="failed")
    assert (scene.states(run)["clean"], run.state) == ("failed", "success")
