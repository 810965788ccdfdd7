"""Runs by a schedule: each slot once, whatever people, other runs or broken neighbours do (I5, I6)."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from scheduler_app.models import DagModel, DagRun, DagVersion, TaskInstance, graphs, schedules, transitions
from scheduler_app.queries.page_why_run import why_no_run
from scheduler_app.scheduler.loop import Loop
from scheduler_app.scheduler.phases import create_runs
from tests.rows import T0, trigger
from tests.scheduler.scene import Scene
from tests.shapes import shape


def cron(expression: str) -> dict[str, Any]:
    return {"kind": "cron_trigger", "expression": expression}


def utc(hour: int, minute: int = 0, day: int = 1) -> datetime:
    return datetime(2026, 3, day, hour, minute, tzinfo=UTC)


def scheduled(
    scene: Scene, expression: str, dag_id: str = "dag", start: datetime | None = None, **fields: Any
) -> DagModel:
    """A DAG with a schedule whose next slot is set, as the DAG processor leaves it."""
    dag = scene.dag(
        shape("a", dag_id, timetable=cron(expression), **fields),
        row={"start_date": start or scene.now - timedelta(hours=1), "schedule_hash": expression},
    )
    schedules.plan_next(dag, scene.now)
    dag.save()
    return dag


def slots(dag: DagModel) -> list[datetime]:
    return list(
        DagRun.objects.filter(dag=dag, run_type="scheduled").order_by("run_after").values_list("run_after", flat=True)
    )


def test_a_due_slot_becomes_one_queued_run_with_its_tasks(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *")
    assert scene.phase("create_runs") == 1
    run = DagRun.objects.get()
    assert (run.run_id, run.run_type, run.state) == ("scheduled__2026-03-01T12:00:00+00:00", "scheduled", "queued")
    assert (run.logical_date, run.run_after, run.queued_at) == (utc(12), utc(12), scene.now)
    assert (run.creating_job_id, run.dag_version_id) == (scene.job.pk, dag.latest_version_id)
    assert scene.states(run) == {"a": None}
    assert scene.phase("create_runs") == 0


def test_BC_15_S_35_a_manual_run_never_moves_the_schedule(scene: Scene) -> None:
    scene.now = utc(7)
    dag = scheduled(scene, "0 * * * *", start=utc(7))
    scene.settle()
    scene.play(DagRun.objects.get())
    scene.now = utc(7, 17)
    scene.play(trigger(dag, 1, now=scene.now, prefix="hand", logical_date=utc(7, 17))[0])
    dag.refresh_from_db()
    assert dag.next_dagrun_run_after == utc(8)
    scene.now = utc(8)
    scene.settle()
    assert slots(dag) == [utc(7), utc(8)]


def test_S_35_an_old_run_that_ends_again_moves_nothing(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *", start=utc(10), catchup=True)
    scene.settle()
    for run in DagRun.objects.order_by("run_after"):
        scene.play(run)
    old = DagRun.objects.order_by("run_after").first()
    assert old is not None
    before = DagModel.objects.values_list(*schedules.NEXT_COLUMNS, *schedules.LAST_COLUMNS).get()
    transitions.tasks("clear", [scene.task(old, "a").pk], scene.now)
    transitions.runs("clear", [old.pk], scene.now)
    scene.play(old)
    assert DagModel.objects.values_list(*schedules.NEXT_COLUMNS, *schedules.LAST_COLUMNS).get() == before
    assert slots(dag) == [utc(10), utc(11), utc(12)]


def test_S_35_the_pointer_moves_forward_only(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *", start=utc(10), catchup=True)
    first = schedules.next_slot(dag, scene.now)
    assert first is not None
    schedules.advance(dag, first)
    second = schedules.next_slot(dag, scene.now)
    assert second is not None
    schedules.advance(dag, second)
    for old in (first, second):
        schedules.advance(dag, old)
    assert (dag.last_slot_run_after, dag.last_slot_logical_date) == (second.run_after, second.logical_date)
    assert first.run_after < second.run_after


def test_BC_17_S_34_with_one_active_run_the_next_one_comes_at_its_time(scene: Scene) -> None:
    scene.now = utc(12)
    dag = scheduled(scene, "*/5 * * * *", start=utc(12), max_active_runs=1)
    for minute in (0, 5, 10):
        scene.now = utc(12, minute)
        scene.wait(0)
        scene.settle()
        run = DagRun.objects.get(run_after=scene.now)
        assert run.state == "running"
        scene.play(run)
    assert slots(dag) == [utc(12), utc(12, 5), utc(12, 10)]


@pytest.mark.parametrize("verb", ["mark_success", "mark_failed"])
def test_S_33_S_36_room_for_the_next_run_is_computed_whoever_ended_the_last(scene: Scene, verb: str) -> None:
    dag = scheduled(scene, "*/5 * * * *", start=utc(12), max_active_runs=1)
    scene.settle()
    scene.now = utc(12, 5)
    assert scene.phase("create_runs") == 0
    dag.refresh_from_db()
    assert dag.next_dagrun_run_after == utc(12, 5)
    run = DagRun.objects.get()
    transitions.tasks("mark_success", [scene.task(run, "a").pk], scene.now)
    transitions.runs(verb, [run.pk], scene.now)
    assert scene.phase("create_runs") == 1
    assert slots(dag) == [utc(12), utc(12, 5)]


def test_with_use_job_schedule_off_no_schedule_makes_a_run_and_the_dag_says_so(scene: Scene, settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "use_job_schedule": False}
    dag = scheduled(scene, "0 * * * *")
    scene.set(use_job_schedule=False)
    scene.settle()
    assert not DagRun.objects.exists()
    why = why_no_run(dag, scene.now)
    assert why is not None
    assert (why.code, why.text) == (
        "schedules_off",
        "No schedule makes runs here: the setting SCHEDULER_USE_JOB_SCHEDULE is off.",
    )
    scene.set(use_job_schedule=True)
    scene.settle()
    assert scene.run_states(dag) == ["running"]


def test_creation_stops_at_max_active_runs(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *", start=utc(1), catchup=True, max_active_runs=3)
    scene.settle()
    assert scene.run_states(dag) == ["running"] * 3
    assert slots(dag) == [utc(1), utc(2), utc(3)]


def test_BC_21_queued_runs_start_one_after_another_oldest_first(scene: Scene) -> None:
    dag = scene.dag(shape("a", max_active_runs=1))
    runs = scene.runs(dag, 6)
    for started in range(6):
        scene.settle()
        assert scene.run_states(dag) == ["success"] * started + ["running"] + ["queued"] * (5 - started)
        scene.play(runs[started])


def test_BC_23_S_38_a_run_id_taken_by_somebody_does_not_swallow_the_slot(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *")
    other = scheduled(scene, "0 * * * *", "other")
    taken = scene.run(dag, prefix="x")
    DagRun.objects.filter(pk=taken.pk).update(run_id="scheduled__2026-03-01T12:00:00+00:00")
    scene.phase("create_runs")
    assert (slots(dag), slots(other)) == ([utc(12)], [utc(12)])
    made = DagRun.objects.get(dag=dag, run_type="scheduled")
    assert made.run_id == "scheduled__2026-03-01T12:00:00+00:00_1"
    assert scene.states(made) == {"a": None}


def test_S_38_a_manual_run_at_the_same_instant_does_not_swallow_the_slot(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *")
    trigger(dag, 1, now=scene.now, logical_date=utc(12))
    scene.phase("create_runs")
    assert slots(dag) == [utc(12)]


@pytest.mark.parametrize(("minutes", "expected"), [(31, []), (35, [35]), (36, [36])])
def test_BC_25_without_catchup_a_pause_leaves_at_most_the_latest_slot(
    scene: Scene, minutes: int, expected: list[int]
) -> None:
    scene.now = utc(11, 30)
    dag = scheduled(scene, "* * * * *", start=utc(11, 30))
    scene.settle()
    assert slots(dag) == [utc(11, 30)]
    DagModel.objects.update(is_paused=True)
    scene.now = utc(11, minutes)
    scene.settle()
    assert slots(dag) == [utc(11, 30)]
    if expected:
        DagModel.objects.update(is_paused=False)
    scene.settle()
    assert slots(dag)[1:] == [utc(11, minute) for minute in expected]


def test_BC_31_S_37_no_dag_may_have_max_active_runs_0(scene: Scene) -> None:
    with pytest.raises(IntegrityError, match="dag_max_active_runs_positive"), transaction.atomic():
        scene.dag(shape("a", max_active_runs=0))


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"kind": "cron_trigger", "expression": "61 * * * *"}, "61 * * * *"),
        ({"kind": "cron_trigger"}, "needs the key 'expression'"),
        ({"kind": "no such kind"}, "Unknown timetable kind"),
    ],
)
def test_BC_59_S_39_a_timetable_that_raises_stops_its_own_dag_alone(
    scene: Scene, document: dict[str, Any], error: str
) -> None:
    bad = scheduled(scene, "0 * * * *", "bad")
    good = scheduled(scene, "0 * * * *", "good")
    DagModel.objects.filter(pk="bad").update(timetable=document)
    scene.tick()
    assert (slots(bad), slots(good)) == ([], [utc(12)])
    bad.refresh_from_db()
    assert error in (bad.schedule_error or "")
    assert bad.schedule_failures == 1
    assert bad.backoff_until is not None
    assert bad.backoff_until > scene.now


def test_BC_59_a_dag_that_is_mended_runs_and_its_error_is_gone(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *")
    DagModel.objects.update(timetable={"kind": "no such kind"})
    scene.tick()
    DagModel.objects.update(timetable=cron("0 * * * *"))
    scene.wait(60)
    scene.tick()
    dag.refresh_from_db()
    assert (slots(dag), dag.schedule_error, dag.schedule_failures) == ([utc(12)], None, 0)


def test_BC_59_a_timetable_without_a_next_run_is_no_error(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *")
    DagModel.objects.update(end_date=utc(1))
    scene.tick()
    dag.refresh_from_db()
    assert (slots(dag), dag.next_dagrun_run_after, dag.schedule_error) == ([], None, None)


def test_BC_61_S_40_broken_dags_at_the_head_hold_nobody_up(scene: Scene) -> None:
    """Their definitions are missing; all due, and due before the others."""
    for number in range(10):
        dag = scheduled(scene, "0 * * * *", f"broken{number}", start=utc(1))
        DagModel.objects.filter(pk=dag.pk).update(next_dagrun_run_after=utc(1))
        DagVersion.objects.filter(dag=dag).delete()
    healthy = [scheduled(scene, "0 * * * *", f"healthy{number:02}") for number in range(50)]
    graphs.forget()
    scene.limit = 10
    # The broken ones fill the first window; with nothing to keep them away they would fill each of them.
    scene.phase(*["create_runs"] * 6)
    assert DagRun.objects.filter(dag__in=healthy).count() == 50
    broken = DagModel.objects.filter(pk__startswith="broken")
    assert [row.schedule_failures for row in broken] == [1] * 10
    assert all("is not stored" in (row.schedule_error or "") for row in broken)


def test_BC_61_failures_in_a_row_wait_longer_and_longer(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *")
    DagVersion.objects.all().delete()
    graphs.forget()
    waits = []
    for _ in range(4):
        scene.tick()
        dag.refresh_from_db()
        assert dag.backoff_until is not None
        waits.append((dag.backoff_until - scene.now).total_seconds())
        scene.now = dag.backoff_until
    assert dag.schedule_failures == 4
    assert [round(after / before, 1) for before, after in itertools.pairwise(waits)] == [2.0, 2.0, 2.0]


def test_BC_63_priorities_beyond_the_column_are_cut(scene: Scene) -> None:
    big = 2**31 - 1
    run = scene.run(scene.dag("a >> b", tasks={"*": {"priority_weight": big}}))
    assert list(TaskInstance.objects.filter(dag_run=run).values_list("priority_weight", flat=True)) == [big, big]
    scene.play(run)
    assert run.state == "success"


def test_BC_125_catching_up_creates_every_slot_in_order_and_no_more_than_may_be_active(scene: Scene) -> None:
    scene.now = utc(0, day=3)
    dag = scheduled(scene, "* * * * *", start=utc(0, day=1), catchup=True, max_active_runs=16)
    scene.tick()
    assert slots(dag) == [utc(0, minute, day=1) for minute in range(16)]
    for run in DagRun.objects.order_by("run_after"):
        scene.play(run)
    assert slots(dag)[16:20] == [utc(0, minute, day=1) for minute in range(16, 20)]


def test_BC_125_without_catchup_two_days_down_make_one_run_with_its_intended_time(scene: Scene) -> None:
    scene.now = utc(0, day=1)
    dag = scheduled(scene, "* * * * *", start=scene.now)
    scene.settle()
    scene.now = utc(0, day=3) + timedelta(seconds=20)
    scene.settle()
    assert slots(dag) == [utc(0, day=1), utc(0, day=3)]
    assert DagRun.objects.get(run_after=utc(0, day=3)).logical_date == utc(0, day=3)


def test_BC_127_two_leaders_make_one_run_of_one_slot(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *")
    pointer = DagModel.objects.values(*schedules.NEXT_COLUMNS, *schedules.LAST_COLUMNS).get()
    scene.phase("create_runs")
    DagModel.objects.update(**pointer)  # the other leader's creation, from the same reading of the schedule
    scene.phase("create_runs", job=scene.new_job())
    assert slots(dag) == [utc(12)]
    dag.refresh_from_db()
    assert dag.last_slot_run_after == utc(12)


def test_I6_the_pointer_never_goes_back_to_a_slot_that_was_created(scene: Scene) -> None:
    dag = scheduled(scene, "0 * * * *", start=utc(10), catchup=True)
    scene.phase("create_runs")
    DagModel.objects.update(timetable=cron("30 * * * *"), schedule_hash="30 * * * *", next_dagrun_run_after=utc(1))
    scene.now = utc(13)
    scene.phase("create_runs")
    assert slots(dag) == [utc(10), utc(11), utc(12), utc(12, 30)]


@pytest.mark.parametrize("column", ["is_paused", "is_stale", "held_at"])
def test_a_dag_that_stands_still_gets_no_runs(scene: Scene, column: str) -> None:
    dag = scheduled(scene, "0 * * * *")
    DagModel.objects.update(**{column: scene.now if column == "held_at" else True})
    assert scene.phase("create_runs") == 0
    assert slots(dag) == []


def test_S_46_a_run_keeps_the_version_it_was_created_with(scene: Scene) -> None:
    scene.set(runs_follow_newest_version=False)
    dag = scheduled(scene, "0 * * * *")
    scene.settle()
    first = dag.latest_version_id
    scene.dag(shape("a >> b", timetable=dag.timetable))
    run = DagRun.objects.get()
    scene.play(run)
    assert (run.dag_version_id, run.state, scene.states(run)) == (first, "success", {"a": "success"})


def test_S_42_creation_writes_no_column_of_the_dag_but_its_schedules_own(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What others wrote between the phase's reading and its writing stays."""
    dag = scheduled(scene, "0 * * * *")
    theirs = {"description": "renamed", "is_paused": True, "max_active_tasks": 3, "held_why": "audit"}
    create = create_runs._create

    def meanwhile(*args: Any) -> int:
        DagModel.objects.update(**theirs)
        return create(*args)

    monkeypatch.setattr(create_runs, "_create", meanwhile)
    before = DagModel.objects.values().get()
    scene.phase("create_runs")
    after = DagModel.objects.values().get()
    changed = {name for name in before if before[name] != after[name]}
    assert changed - theirs.keys() <= {*schedules.NEXT_COLUMNS, *schedules.LAST_COLUMNS}
    assert {name: after[name] for name in theirs} == theirs
    assert slots(dag) == [scene.now]


def test_BC_117_a_change_of_one_schedule_fires_no_other_again(scene: Scene) -> None:
    fires = scheduled(scene, "10 0 * * *", "fires")
    scene.wait(12 * 3600 + 601)
    scene.settle()
    assert DagRun.objects.filter(dag=fires).count() == 1
    for minute in range(3):
        scheduled(scene, f"{20 + minute} 0 * * *", f"edited{minute}")
        scene.wait(2)
        scene.settle()
    assert DagRun.objects.filter(dag=fires).count() == 1


def test_BC_119_an_interval_longer_than_any_process_lives_fires_at_its_stored_time(scene: Scene) -> None:
    """A new scheduler, which remembers nothing, comes each day."""
    weekly = scheduled(scene, "0 12 * * 0", "weekly")  # the scene begins on a Sunday at noon
    made = []
    for _ in range(15):
        scene.loop, scene.job = Loop(monotonic=lambda: (scene.now - T0).total_seconds()), scene.new_job()
        scene.tick()
        made.append(DagRun.objects.filter(dag=weekly).count())
        scene.wait(24 * 3600)
    assert made == [1] * 7 + [2] * 7 + [3]


def test_BC_129_a_schedule_that_is_taken_away_leaves_no_run_behind_it(scene: Scene) -> None:
    """There are no runs made ahead that could outlive it."""
    dag = scheduled(scene, "0 * * * *", "hourly")
    scene.tick()
    scene.wait(3600)
    scene.settle()
    before = list(DagRun.objects.filter(dag=dag).values_list("run_after", flat=True))
    assert all(run_after <= scene.now for run_after in before)
    gone = scene.dag("a", "hourly", timetable={"kind": "null"}, row={"schedule_hash": "none"})
    schedules.plan_next(gone, scene.now)
    gone.save()
    scene.wait(5 * 3600)
    scene.settle()
    assert list(DagRun.objects.filter(dag=dag).values_list("run_after", flat=True)) == before
