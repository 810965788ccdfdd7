"""What people, tasks and backfills may ask for: one transaction each, audited, and refused where it makes no sense."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app.access import Actor, system
from scheduler_app.actions import assets, clear, errors, hold, mark, pause, pools, runs, selection, trigger, variables
from scheduler_app.models import (
    Asset,
    AssetQueuedEvent,
    AssetUse,
    Audit,
    Callback,
    DagRun,
    Pool,
    TaskInstance,
    Variable,
    Wake,
    transitions,
)
from tests import rows
from tests.rows import T0, at
from tests.shapes import shape

pytestmark = pytest.mark.django_db

ANN = Actor("person", "ann", system("command", "x").permissions)
BOB = Actor("person", "bob", frozenset({"scheduler_app.view_dagmodel"}))


@pytest.fixture
def etl():
    return rows.store(shape("extract >> [clean, check] >> load", "etl"))


@pytest.fixture
def run(etl):
    (run,) = rows.trigger(etl)
    transitions.runs("start", [run.pk], T0)
    Wake.objects.all().delete()
    return run


def move(run: DagRun, task_id: str, *verbs: str) -> int:
    key = TaskInstance.objects.get(dag_run=run, task_id=task_id, map_index__lte=0).pk
    for verb in verbs:
        assert transitions.tasks(verb, [key], at(1)) == [key]
    return key


RUNNING = ("schedule", "queue", "start")


def audit() -> list[tuple]:
    return list(Audit.objects.order_by("id").values_list("event", "owner", "actor_kind", "run_id", "reason"))


def test_a_held_run_says_who_why_and_until_and_its_release_wakes_it(run):
    held = hold.hold_run(ANN, "etl", "run0", at(10), why="disk is full", until=at(600))
    assert (held.held_by, held.held_why, held.held_until, held.next_check_at) == (
        "ann",
        "disk is full",
        at(600),
        at(600),
    )
    assert Wake.objects.count() == 0
    released = hold.release_run(ANN, "etl", "run0", at(20))
    assert released.held_at is None
    assert list(Wake.objects.values_list("dag_run_id", "reason")) == [(run.pk, "run_released")]
    assert audit() == [
        ("hold_dag_run", "ann", "person", "run0", "disk is full"),
        ("release_dag_run", "ann", "person", "run0", None),
    ]
    hold.release_run(ANN, "etl", "run0", at(30))
    assert Audit.objects.count() == 2


def test_a_held_task_is_released_for_itself_alone(run):
    hold.hold_task(ANN, "etl", "run0", "clean", at(10), why="wait for Eve")
    hold.release_task(ANN, "etl", "run0", "clean", at(20))
    assert list(Wake.objects.values_list("task_id", "reason")) == [("clean", "task_released")]


def test_a_dag_may_be_kept_from_new_runs(etl):
    dag = hold.hold_new_runs(ANN, "etl", at(10), why="migration")
    assert (dag.held_why, dag.is_paused) == ("migration", False)
    assert hold.release_new_runs(ANN, "etl", at(20)).held_at is None


@pytest.mark.parametrize("bad", [{"why": " "}, {"why": "x", "until": at(-5)}])
def test_a_hold_needs_a_reason_and_an_end_that_is_to_come(run, bad):
    with pytest.raises(errors.Invalid):
        hold.hold_run(ANN, "etl", "run0", at(0), **bad)
    assert Audit.objects.count() == 0


def test_whoever_may_only_look_changes_nothing(run):
    for attempt in (
        lambda: pause.set_paused(BOB, "etl", True, T0),
        lambda: hold.hold_run(BOB, "etl", "run0", T0, why="x"),
        lambda: trigger.trigger_run(BOB, "etl", T0),
        lambda: runs.mark_run(BOB, "etl", "run0", "failed", T0),
        lambda: runs.delete_run(BOB, "etl", "run0", T0),
        lambda: clear.clear(BOB, selection.Wanted("etl"), T0),
        lambda: mark.mark(BOB, selection.Wanted("etl"), "success", T0),
        lambda: variables.create(BOB, "k", "v", T0),
        lambda: pools.create(BOB, "p", 1, T0),
    ):
        with pytest.raises(errors.Forbidden):
            attempt()
    assert (Audit.objects.count(), Variable.objects.count(), Pool.objects.count()) == (0, 0, 1)


def test_what_does_not_exist_is_missing(etl):
    for attempt in (
        lambda: pause.set_paused(ANN, "nope", True, T0),
        lambda: runs.mark_run(ANN, "etl", "nope", "failed", T0),
        lambda: hold.hold_task(ANN, "etl", "nope", "clean", T0, why="x"),
        lambda: clear.clear(ANN, selection.Wanted("etl", tasks=["nope"]), T0),
        lambda: clear.clear(ANN, selection.Wanted("etl", runs=["nope"]), T0),
    ):
        with pytest.raises(errors.Missing):
            attempt()


def test_an_act_refuses_when_the_set_changed_since_the_preview(run):
    move(run, "extract", *RUNNING, "fail")
    wanted = selection.Wanted("etl", runs=["run0"], only_failed=True)
    shown = [row.pk for row in selection.chosen(ANN, wanted)]
    move(run, "clean", "upstream_fail")
    with pytest.raises(errors.Conflict, match="changed since the preview"):
        clear.clear(ANN, wanted, at(5), expect=shown)
    assert rows.states(run)["extract"] == "failed"
    shown = [row.pk for row in selection.chosen(ANN, wanted)]
    assert len(clear.clear(ANN, wanted, at(5), expect=shown).task_instances) == 2


def test_clearing_without_resetting_the_run_leaves_its_state(run):
    move(run, "extract", *RUNNING, "fail")
    transitions.runs("fail", [run.pk], at(2))
    done = clear.clear(ANN, selection.Wanted("etl", runs=["run0"]), at(5), reset_runs=False)
    run.refresh_from_db()
    assert (run.state, done.runs) == ("failed", [])


def test_past_and_future_need_a_run_to_be_counted_from(etl):
    with pytest.raises(errors.Refused):
        list(selection.chosen(ANN, selection.Wanted("etl", past=True)))


def test_marking_a_run_leaves_a_teardown_its_work(etl):
    tasks = {"make": {"is_setup": True}, "drop": {"is_teardown": True}}
    dag = rows.store(shape("make >> work >> drop; make >> drop", "st", tasks=tasks))
    (run,) = rows.trigger(dag)
    transitions.runs("start", [run.pk], T0)
    move(run, "make", *RUNNING, "succeed")
    move(run, "work", *RUNNING)
    marked = runs.mark_run(ANN, "st", "run0", "failed", at(5))
    assert rows.states(run) == {"drop": None, "make": "success", "work": "failed"}
    assert marked.state == "running"
    move(run, "drop", *RUNNING, "succeed")
    assert (
        runs.mark_run(ANN, "st", "run0", "failed", at(9), reason="by ops").state_reason
        == "marked failed by ann: by ops"
    )


def test_a_run_that_set_nothing_up_has_nothing_to_tear_down(etl):
    tasks = {"make": {"is_setup": True}, "drop": {"is_teardown": True}}
    dag = rows.store(shape("make >> work >> drop; make >> drop", "st", tasks=tasks))
    (run,) = rows.trigger(dag)
    transitions.runs("start", [run.pk], T0)
    assert runs.mark_run(ANN, "st", "run0", "success", at(5)).state == "success"
    assert set(rows.states(run).values()) == {"skipped"}


def test_new_tasks_of_a_newer_version_are_added_without_clearing(etl, run):
    move(run, "extract", *RUNNING, "succeed")
    transitions.runs("succeed", [run.pk], at(2))
    rows.store(shape("extract >> [clean, check] >> load >> report", "etl"))
    run = DagRun.objects.get(pk=run.pk)
    assert runs.new_tasks(run) == ["report"]
    again = runs.clear_run(ANN, "etl", "run0", at(5), only_new=True)
    assert again.state == "queued"
    assert rows.states(run) == {"check": None, "clean": None, "extract": "success", "load": None, "report": None}


def test_a_task_triggers_a_run_in_its_own_name(etl):
    made = trigger.trigger_run(
        system("task", "parent.call"), "etl", T0, run_id="child", logical_date=T0, triggered_by="operator"
    )
    assert (made.state, made.triggered_by, made.triggering_user_name) == ("queued", "operator", None)
    assert audit() == [("trigger_dag_run", "parent.call", "task", "child", None)]


def test_a_future_logical_date_makes_a_run_of_that_date(etl):
    later = T0 + timedelta(days=30)
    made = trigger.trigger_run(ANN, "etl", T0, logical_date=later)
    assert (made.logical_date, made.data_interval_end, made.run_after) == (later, later, T0)


@pytest.mark.parametrize("fields", [{"has_import_errors": True}, {"is_stale": True}, {"latest_version": None}])
def test_a_dag_that_does_not_load_is_not_triggered(etl, fields):
    for name, value in fields.items():
        setattr(etl, name, value)
    etl.save()
    with pytest.raises(errors.Refused):
        trigger.trigger_run(ANN, "etl", T0)


def test_a_paused_dag_can_be_triggered_and_waits(etl):
    pause.set_paused(ANN, "etl", True, T0)
    assert trigger.trigger_run(ANN, "etl", T0).state == "queued"


def test_an_event_by_hand_is_queued_for_the_dags_that_wait_for_its_asset_and_are_not_paused(etl):
    asset = Asset.objects.create(name="a", uri="a", created_at=T0, updated_at=T0)
    other = rows.store(shape("x", "other"), is_paused=True)
    for dag in (etl, other):
        AssetUse.objects.create(dag=dag, asset=asset, kind="schedule", created_at=T0)
    assets.create_event(ANN, asset.pk, at(1))
    assert list(AssetQueuedEvent.objects.values_list("dag_id", flat=True)) == ["etl"]


def test_a_pool_in_use_is_not_deleted_and_the_default_one_keeps_its_name(run):
    pools.create(ANN, "p", 3, T0)
    TaskInstance.objects.filter(task_id="extract").update(pool="p")
    move(run, "extract", *RUNNING)
    with pytest.raises(errors.Conflict):
        pools.delete(ANN, "p", T0)
    with pytest.raises(errors.Refused):
        pools.change(ANN, "default_pool", T0, pool="other")
    with pytest.raises(errors.Conflict):
        pools.change(ANN, "p", T0, pool="default_pool")
    assert pools.change(ANN, "p", T0, pool="q", slots=9).slots == 9


def test_BC_109_each_action_leaves_one_line_in_the_audit_and_a_preview_none(run):
    wanted = selection.Wanted("etl", tasks=["extract"], runs=["run0"])
    list(selection.chosen(ANN, wanted))
    mark.would_change(ANN, wanted, "success")
    assert Audit.objects.count() == 0
    mark.mark(ANN, wanted, "success", at(1), reason="checked by hand")
    clear.clear(ANN, wanted, at(2))
    runs.mark_run(ANN, "etl", "run0", "success", at(3))
    runs.delete_run(ANN, "etl", "run0", at(4))
    assert audit() == [
        ("patch_task_instance", "ann", "person", "run0", "checked by hand"),
        ("post_clear_task_instances", "ann", "person", "run0", None),
        ("patch_dag_run", "ann", "person", "run0", None),
        ("delete_dag_run", "ann", "person", "run0", None),
    ]


def test_marking_what_runs_writes_why_it_ended(run):
    key = move(run, "extract", *RUNNING)
    mark.mark(ANN, selection.Wanted("etl", tasks=["extract"], runs=["run0"]), "failed", at(1), reason="stuck")
    ended = TaskInstance.objects.get(pk=key)
    assert (ended.state, ended.reason, ended.end_date) == ("failed", "marked failed by ann: stuck", at(1))


def test_marking_with_what_comes_after_lets_the_run_be_judged_anew(run):
    for task_id in ("extract", "clean"):
        move(run, task_id, *RUNNING, "succeed")
    transitions.runs("succeed", [run.pk], at(2))
    mark.mark(ANN, selection.Wanted("etl", tasks=["extract"], runs=["run0"], downstream=True), "failed", at(5))
    run.refresh_from_db()
    assert run.state == "queued"
    assert rows.states(run) == {"extract": "failed", "clean": None, "check": None, "load": None}


def test_marking_with_what_comes_before_clears_nothing_that_was_marked(run):
    move(run, "extract", *RUNNING, "succeed")
    mark.mark(ANN, selection.Wanted("etl", tasks=["load"], runs=["run0"], upstream=True), "failed", at(5))
    assert set(rows.states(run).values()) == {"failed"}


@pytest.mark.parametrize(("asked", "kinds"), [(False, []), (True, ["task_failure", "dag_failure"])])
def test_BC_97_a_mark_is_always_audited_and_asks_for_callbacks_where_the_site_wants_it(settings, asked, kinds):
    settings.SCHEDULER = {**settings.SCHEDULER, "callbacks_on_mark": asked}
    tasks = {"a": {"callbacks": ("failure", "success")}, "b": {"callbacks": ("success",)}}
    (run,) = rows.trigger(rows.store(shape("a; b", "called", tasks, callbacks=("failure",))))
    wanted = selection.Wanted("called", tasks=["a", "b"], runs=["run0"])
    mark.mark(ANN, wanted, "failed", at(1), reason="wrong data")
    runs.mark_run(ANN, "called", run.run_id, "failed", at(2))
    assert list(Callback.objects.order_by("pk").values_list("kind", flat=True)) == kinds
    assert [event for event, *_ in audit()] == ["patch_task_instance", "patch_dag_run"]
    if asked:
        told = Callback.objects.get(kind="task_failure")
        assert told.payload["reason"] == "marked failed by ann: wrong data"
        assert told.task_instance_id == TaskInstance.objects.get(dag_run=run, task_id="a").pk


def test_BC_97_a_task_that_is_marked_and_then_ends_otherwise_asks_once_for_each(settings):
    """The mark's own row, and none for the report of the attempt that was stopped."""
    settings.SCHEDULER = {**settings.SCHEDULER, "callbacks_on_mark": True}
    (run,) = rows.trigger(rows.store(shape("a", "called", {"a": {"callbacks": ("success",)}})))
    for _ in range(2):
        mark.mark(ANN, selection.Wanted("called", tasks=["a"], runs=["run0"]), "success", at(1))
        clear.clear(ANN, selection.Wanted("called", tasks=["a"], runs=["run0"]), at(2))
    assert Callback.objects.filter(dag_run=run).count() == 1
