"""Backfills: the scheduler's own runs of the past, in order, under their own limit, whoever clicks meanwhile (F-31)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app import access
from scheduler_app.actions import backfills, clear, selection
from scheduler_app.actions.errors import ActionError, Conflict, Invalid
from scheduler_app.engine.run_plans import RunPlan
from scheduler_app.models import Audit, Backfill, BackfillSlot, DagModel, DagRun, TaskInstance, schedules, transitions
from scheduler_app.queries.page_why_run import before_start
from tests.scheduler.scene import Scene
from tests.shapes import shape

ANN = access.system("person", "ann")


def day(number: int) -> datetime:
    return datetime(2026, 1, number, tzinfo=UTC)


def daily(scene: Scene, text: str = "a", **fields: Any) -> DagModel:
    """A daily DAG whose schedule begins tomorrow."""
    timetable = {"kind": "cron_trigger", "expression": "0 0 * * *"}
    start = scene.now + timedelta(days=1)
    dag = scene.dag(shape(text, timetable=timetable, **fields), row={"start_date": start})
    schedules.plan_next(dag, scene.now)
    dag.save()
    return dag


def wanted(first: int = 1, last: int = 5, **fields: Any) -> backfills.Wanted:
    return backfills.Wanted("dag", day(first), day(last), **fields)


def create(scene: Scene, first: int = 1, last: int = 5, **fields: Any) -> Backfill:
    return backfills.create(ANN, wanted(first, last, **fields), scene.now)


def runs() -> list[tuple[int, str]]:
    """(day, state) of every run of a backfill, oldest first."""
    rows = DagRun.objects.filter(run_type="backfill").order_by("logical_date").values_list("logical_date", "state")
    return [(logical_date.day, state) for logical_date, state in rows if logical_date]


def outcomes() -> list[str | None]:
    return list(BackfillSlot.objects.order_by("ordinal").values_list("outcome", flat=True))


def play_all(scene: Scene, **ends: str) -> list[int]:
    """Plays runs until none is under way; the days in the order in which their tasks were handed out."""
    order: list[int] = []
    for _ in range(100):
        scene.settle()
        queued = list(
            TaskInstance.objects.filter(state="queued").select_related("dag_run").order_by("queued_when", "pk")
        )
        if not queued:
            return order
        order += [task.dag_run.logical_date.day for task in queued if task.dag_run.logical_date]
        scene.begin(*queued)
        for task in queued:
            scene.end(task, state=ends.get(task.task_id, "success"))
        scene.wait(1)
    raise AssertionError("The backfill does not end")


def test_a_backfill_makes_the_runs_of_its_range_and_ends_with_the_last(scene: Scene) -> None:
    daily(scene)
    row = create(scene, conf={"x": 1})
    assert play_all(scene) == [1, 2, 3, 4, 5]
    row.refresh_from_db()
    assert (row.completed_at is not None, outcomes()) == (True, ["created"] * 5)
    run = DagRun.objects.order_by("logical_date")[0]
    assert (run.run_id, run.run_type, run.triggered_by) == (
        "backfill__2026-01-01T00:00:00+00:00",
        "backfill",
        "backfill",
    )
    assert (run.conf, run.triggering_user_name, run.backfill_id, run.slot_key) == ({"x": 1}, "ann", row.pk, None)
    audit = Audit.objects.get()
    assert (audit.event, audit.owner, audit.after) == ("create_backfill", "ann", {"slots": 5})


def test_no_more_runs_are_under_way_than_the_backfill_says_and_the_schedule_has_its_own_room(scene: Scene) -> None:
    dag = daily(scene, max_active_runs=1)
    create(scene, max_active_runs=2)
    manual = scene.runs(dag, 1)[0]
    scene.settle()
    assert runs() == [(1, "running"), (2, "running"), (3, "queued"), (4, "queued"), (5, "queued")]
    manual.refresh_from_db()
    assert manual.state == "running"
    scene.play(DagRun.objects.get(logical_date=day(1)))
    scene.settle()
    assert runs()[:3] == [(1, "success"), (2, "running"), (3, "running")]


def test_I6_a_backfill_does_not_move_the_schedule(scene: Scene) -> None:
    dag = daily(scene)
    before = DagModel.objects.values().get()
    create(scene)
    play_all(scene)
    assert DagModel.objects.values().get() == before
    assert dag.next_dagrun_run_after is not None


def test_backwards_the_latest_slot_runs_first(scene: Scene) -> None:
    daily(scene)
    create(scene, reverse=True, max_active_runs=1)
    assert play_all(scene) == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("behavior", "found", "again"),
    [
        ("none", ["already exists", "already exists", "in flight", "created"], [4]),
        ("failed", ["already exists", "cleared", "in flight", "created"], [2, 4]),
        ("completed", ["cleared", "cleared", "in flight", "created"], [1, 2, 4]),
    ],
)
def test_slots_that_have_a_run_are_done_again_as_was_asked(
    scene: Scene, behavior: str, found: list[str], again: list[int]
) -> None:
    dag = daily(scene)
    for number, state in ((1, "success"), (2, "failed")):
        scene.play(scene.runs(dag, 1, prefix=f"r{number}", logical_date=day(number))[0], a=state)
    under_way = scene.runs(dag, 1, prefix="r3", logical_date=day(3))[0]
    scene.settle()
    shown = backfills.preview(ANN, wanted(1, 4, reprocess_behavior=behavior), scene.now)
    assert [plan.logical_date.day for plan in shown if plan.logical_date] == again
    assert not Backfill.objects.exists()
    create(scene, 1, 4, reprocess_behavior=behavior)
    scene.settle()
    assert outcomes() == found
    assert [slot for slot, _ in runs()] == again
    under_way.refresh_from_db()
    assert under_way.run_type == "manual"
    cleared = Audit.objects.filter(event="clear_dag_run")
    assert {(row.actor_kind, row.owner) for row in cleared} <= {("backfill", f"backfill {Backfill.objects.get().pk}")}
    assert cleared.count() == found.count("cleared")


def test_a_paused_backfill_starts_nothing_and_lets_run_what_runs(scene: Scene) -> None:
    daily(scene)
    row = create(scene, 1, 3, max_active_runs=1)
    scene.settle()
    backfills.set_paused(ANN, row.pk, True, scene.now)
    play_all(scene)
    assert runs() == [(1, "success"), (2, "queued"), (3, "queued")]
    backfills.set_paused(ANN, row.pk, False, scene.now)
    play_all(scene)
    assert runs() == [(1, "success"), (2, "success"), (3, "success")]
    assert list(Audit.objects.order_by("pk").values_list("event", flat=True)) == [
        "create_backfill",
        "pause_backfill",
        "unpause_backfill",
    ]


def test_a_cancelled_backfill_fails_what_has_not_started(scene: Scene) -> None:
    daily(scene)
    row = create(scene, 1, 3, max_active_runs=1)
    scene.settle()
    backfills.cancel(ANN, row.pk, scene.now, reason="wrong year")
    scene.settle()
    assert runs() == [(1, "running"), (2, "failed"), (3, "failed")]
    waiting = DagRun.objects.get(logical_date=day(2))
    assert waiting.state_reason == f"Backfill {row.pk} was cancelled by ann: wrong year"
    assert scene.states(waiting) == {"a": "skipped"}
    play_all(scene)
    assert runs()[0] == (1, "success")
    with pytest.raises(Conflict, match="already completed"):
        backfills.cancel(ANN, row.pk, scene.now)


def test_BC_99_a_cleared_run_of_a_cancelled_backfill_is_a_run_like_any_other(scene: Scene) -> None:
    dag = daily(scene)
    row = create(scene, 1, 2, max_active_runs=1)
    scene.settle()
    backfills.set_paused(ANN, row.pk, True, scene.now)
    backfills.cancel(ANN, row.pk, scene.now)
    failed = DagRun.objects.get(logical_date=day(2))
    clear.clear(ANN, selection.Wanted(dag.dag_id, runs=[failed.run_id]), scene.now)
    failed.refresh_from_db()
    assert (failed.state, failed.backfill_id) == ("queued", None)
    scene.play(failed)
    assert failed.state == "success"


def test_a_run_that_is_cleared_while_its_backfill_goes_on_stays_under_its_limit(scene: Scene) -> None:
    daily(scene)
    row = create(scene, 1, 3, max_active_runs=1)
    scene.settle()
    first = DagRun.objects.get(logical_date=day(1))
    scene.play(first)
    transitions.tasks("clear", [scene.task(first, "a").pk], scene.now)
    transitions.runs("clear", [first.pk], scene.now)
    scene.settle()
    assert (sorted(state for _, state in runs()), DagRun.objects.filter(backfill_id=row.pk).count()) == (
        ["queued", "queued", "running"],
        3,
    )


def test_BC_101_S_62_a_full_pool_blocks_nothing_but_its_own_tasks(scene: Scene) -> None:
    scene.pool("small", 1)
    daily(scene, "narrow; wide", tasks={"narrow": {"pool": "small"}})
    row = create(scene, 1, 3)
    play_all(scene)
    row.refresh_from_db()
    assert row.completed_at is not None
    assert runs() == [(1, "success"), (2, "success"), (3, "success")]


def test_why_a_run_of_a_backfill_does_not_start_is_told_by_its_own_limit_and_order(scene: Scene) -> None:
    daily(scene)
    row = create(scene, 1, 4, max_active_runs=1, reverse=True)
    scene.settle()
    backfills.set_paused(ANN, row.pk, True, scene.now)
    told = [
        (verdict.code, verdict.ok, verdict.text)
        for verdict in before_start(DagRun.objects.get(logical_date=day(2)), scene.now)
    ]
    assert told == [
        ("backfill_paused", False, f"Backfill {row.pk} is paused: let it go on to start its runs."),
        (
            "backfill_max_active_runs",
            False,
            f"As many runs of backfill {row.pk} are running as it allows (1). It starts when one of them ends.",
        ),
        ("place", False, "1 queued run starts before it."),
    ]


def test_a_paused_dag_runs_no_backfill_until_it_is_unpaused(scene: Scene) -> None:
    daily(scene)
    DagModel.objects.update(is_paused=True)
    create(scene, 1, 1)
    scene.settle()
    assert runs() == [(1, "queued")]
    DagModel.objects.update(is_paused=False)
    assert play_all(scene) == [1]


def test_I5_a_backfill_whose_dag_cannot_be_read_backs_off_and_holds_up_no_other(scene: Scene) -> None:
    daily(scene)
    other = scene.dag(shape("a", "other", timetable={"kind": "cron_trigger", "expression": "0 0 * * *"}))
    create(scene, 1, 1)
    backfills.create(ANN, backfills.Wanted("other", day(1), day(1)), scene.now)
    DagModel.objects.filter(pk="dag").update(latest_version=None)
    scene.settle()
    assert list(DagRun.objects.values_list("dag_id", "state")) == [(other.dag_id, "running")]
    broken = Backfill.objects.get(dag_id="dag")
    assert (broken.failures, broken.completed_at) == (1, None)
    assert "is not stored" in (broken.error or "")


@pytest.mark.parametrize(
    ("fields", "dag", "error", "words"),
    [
        ({"first": 5, "last": 1}, {}, Invalid, "before from_date"),
        ({"last": 400}, {}, Invalid, "in the future"),
        ({"max_active_runs": 0}, {}, Invalid, "from 1 on"),
        ({"reverse": True, "reprocess_behavior": "failed"}, {"depends_on_past": True}, Invalid, "backwards"),
        ({}, {"depends_on_past": True}, Invalid, "failed or completed"),
    ],
)
def test_what_makes_no_sense_is_refused_with_its_reason(
    scene: Scene, fields: dict[str, Any], dag: dict[str, Any], error: type[ActionError], words: str
) -> None:
    daily(scene, tasks={"a": dag})
    first, last = fields.pop("first", 1), fields.pop("last", 5)
    asked = backfills.Wanted("dag", day(first), day(1) + timedelta(days=last - 1), **fields)
    with pytest.raises(error, match=words):
        backfills.create(ANN, asked, scene.now)
    assert not Backfill.objects.exists()


def test_a_dag_without_a_schedule_has_no_slots_to_fill(scene: Scene) -> None:
    scene.dag("a")
    with pytest.raises(Conflict, match="no schedule"):
        create(scene)


def test_one_backfill_of_a_dag_at_a_time(scene: Scene) -> None:
    daily(scene)
    row = create(scene)
    with pytest.raises(Conflict, match=rf"\(id {row.pk}\)"):
        create(scene)
    backfills.cancel(ANN, row.pk, scene.now)
    assert create(scene).pk != row.pk


def test_a_backfill_whose_slots_are_still_to_be_listed_neither_runs_nor_ends(scene: Scene) -> None:
    scene.dag(shape("a", timetable={"kind": "custom", "class": "my.Timetable"}))
    with pytest.raises(Conflict, match="Only the timetable class of the DAG dag can list its slots"):
        backfills.preview(ANN, wanted(), scene.now)
    row = create(scene)
    scene.settle()
    row.refresh_from_db()
    assert (row.slots_pending, row.completed_at, runs()) == (True, None, [])
    with pytest.raises(Conflict, match="Another backfill"):
        create(scene)
    plan = RunPlan(day(1), day(1), day(1), day(1), "1")
    BackfillSlot.objects.add(row, [plan])
    Backfill.objects.update(slots_pending=False)
    assert play_all(scene) == [1]
    row.refresh_from_db()
    assert row.completed_at is not None


def test_a_backfill_whose_slots_are_still_to_be_listed_can_be_cancelled(scene: Scene) -> None:
    scene.dag(shape("a", timetable={"kind": "custom", "class": "my.Timetable"}))
    row = create(scene)
    backfills.cancel(ANN, row.pk, scene.now)
    assert not Backfill.objects.waiting_for_slots().exists()


def test_the_runs_of_a_partitioned_schedule_have_the_keys_of_their_partitions(scene: Scene) -> None:
    dag = daily(scene)
    dag.timetable = dag.timetable | {"partition": {"format": "%Y-%m-%d", "offset": -1}}
    dag.save()
    create(scene, 2, 4)
    scene.settle()
    keys = DagRun.objects.order_by("logical_date", "run_after").values_list("partition_key", flat=True)
    assert list(keys) == ["2026-01-01", "2026-01-02", "2026-01-03"]


def test_a_run_of_a_backfill_makes_way_for_the_one_that_it_waits_for(scene: Scene) -> None:
    daily(scene, tasks={"a": {"depends_on_past": True}})
    create(scene, 1, 2, max_active_runs=1, reprocess_behavior="failed")
    scene.settle()
    first = DagRun.objects.get(logical_date=day(1))
    scene.play(first, a="failed")
    scene.settle()
    assert runs() == [(1, "failed"), (2, "running")]
    clear.clear(ANN, selection.Wanted("dag", runs=[first.run_id]), scene.now)
    scene.settle()
    assert runs() == [(1, "running"), (2, "queued")]
    assert play_all(scene) == [1, 2]
    assert runs() == [(1, "success"), (2, "success")]


@pytest.mark.parametrize(
    ("timetable", "instead"),
    [
        ({"kind": "null"}, "trigger its runs one by one."),
        (
            {"kind": "partitioned", "condition": {"asset": {"name": "a", "uri": "a"}}},
            (
                "backfill the DAGs that update its assets, whose partitions then make its runs, or trigger a run for "
                "each partition_key."
            ),
        ),
    ],
    ids=["none", "partitions of assets"],
)
def test_a_dag_without_slots_is_told_what_to_do_instead(scene: Scene, timetable: dict[str, Any], instead: str) -> None:
    scene.dag(shape("a", timetable=timetable))
    with pytest.raises(Conflict) as refused:
        create(scene)
    assert str(refused.value).endswith(instead)
    assert (Backfill.objects.count(), DagRun.objects.count()) == (0, 0)
