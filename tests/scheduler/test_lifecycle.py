"""The life of runs and tasks: clear, mark, time out, end, and what must be written with each (I6, I8, I10)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler_app import access
from scheduler_app.actions import clear, selection
from scheduler_app.models import (
    Callback,
    DagModel,
    DagRun,
    TaskInstance,
    TaskInstanceHistory,
    Trigger,
    Wake,
    db,
    transitions,
)
from scheduler_app.scheduler.loop import PHASES
from scheduler_app.triggerer import rows as trigger_rows
from tests.rows import at
from tests.scheduler.scene import Scene
from tests.shapes import chain, parallel, shape


def ended(scene: Scene, run: DagRun) -> tuple[str, object, str | None]:
    run.refresh_from_db()
    return run.state, run.end_date, run.state_reason


# ── time-outs ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_BC_67_S_28_S_43_a_run_that_times_out_leaves_no_task_without_an_end(scene: Scene) -> None:
    run = scene.run(scene.dag(chain(3, "dag", dagrun_timeout=120.0, callbacks=("failure",))))
    scene.tick()
    first = scene.task(run, "t0")
    scene.begin(first)
    scene.wait(119)
    scene.tick(2)
    assert scene.states(run) == {"t0": "running", "t1": None, "t2": None}
    scene.wait(1)
    scene.tick()
    assert scene.states(run) == {"t0": "skipped", "t1": "skipped", "t2": "skipped"}
    assert ended(scene, run) == ("failed", scene.now, "The run took longer than its dagrun_timeout of 120 s.")
    assert list(TaskInstance.objects.values_list("end_date", flat=True).distinct()) == [scene.now]
    assert [(c.kind, c.payload["reason"]) for c in Callback.objects.all()] == [("dag_failure", "timed_out")]
    assert scene.end(first) == 0
    assert scene.states(run)["t0"] == "skipped"


def test_BC_69_a_cleared_run_has_its_whole_time_again(scene: Scene) -> None:
    run = scene.run(scene.dag(shape("a", dagrun_timeout=60.0)))
    scene.play(run)
    first_start = run.start_date
    scene.wait(86_400)
    transitions.tasks("clear", [scene.task(run, "a").pk], scene.now)
    transitions.runs("clear", [run.pk], scene.now)
    scene.tick(2)
    assert scene.states(run) == {"a": "queued"}
    run.refresh_from_db()
    assert (run.state, run.start_date, run.first_start_date) == ("running", scene.now, first_start)
    scene.wait(61)
    scene.tick()
    assert ended(scene, run)[0] == "failed"


@pytest.mark.parametrize("how", ["paused", "held", "held for a while", "backing off"])
def test_S_43_a_run_that_stands_still_times_out_all_the_same(scene: Scene, how: str) -> None:
    tasks = {"a": {"retries": 1, "retry_delay": 5.0}}
    run = scene.run(scene.dag(shape("a >> b", dagrun_timeout=60.0, tasks=tasks)))
    scene.tick()
    attempt = scene.task(run, "a")
    scene.begin(attempt)
    scene.end(attempt, state="failed")
    scene.tick()
    if how == "paused":
        DagModel.objects.update(is_paused=True)
    elif how == "held":
        DagRun.objects.update(held_at=scene.now)
    elif how == "held for a while":
        DagRun.objects.update(held_at=scene.now, held_until=scene.now + timedelta(seconds=600))
    else:
        DagRun.objects.update(backoff_until=scene.now + timedelta(seconds=600))
    Wake.objects.add([run.pk], "held", scene.now)
    scene.wait(10)
    scene.settle()
    assert ended(scene, run)[0] == "running"
    scene.wait(50)
    scene.settle()
    assert ended(scene, run)[0] == "failed"
    assert scene.states(run) == {"a": "skipped", "b": "skipped"}


def test_S_55_a_deferral_that_takes_too_long_fails_in_place(scene: Scene) -> None:
    run = scene.run(scene.dag(parallel(3, "dag", tasks={"p1": {"retries": 1, "retry_delay": 9.0}})))
    scene.tick()
    tasks = [scene.task(run, f"p{n}") for n in range(3)]
    scene.begin(*tasks)
    defer = {"classpath": "a.T", "kwargs": {}, "next_method": "on", "timeout": 60.0}
    for task in tasks:
        scene.end(task, state="deferred", defer=defer)
    transitions.tasks("resume", [tasks[2].pk], scene.now)
    handed = len(scene.executor.handed)
    scene.wait(60)
    scene.phase("enforce_timeouts")
    assert scene.states(run) == {"p0": "failed", "p1": "up_for_retry", "p2": "scheduled"}
    failed = scene.task(run, "p0")
    assert (failed.end_date, failed.trigger_id, failed.trigger_timeout) == (scene.now, None, None)
    assert (failed.reason or "").startswith("Its deferral timed out.")
    assert len(scene.executor.handed) == handed


def test_BC_83_of_an_event_and_a_time_out_at_one_instant_the_first_that_is_stored_wins(scene: Scene) -> None:
    run = scene.run(scene.dag(parallel(2)))
    scene.tick()
    defer = {"classpath": "a.T", "kwargs": {}, "next_method": "on", "timeout": 60.0}
    for name in ("p0", "p1"):
        scene.begin(scene.task(run, name))
        scene.end(scene.task(run, name), state="deferred", defer=defer)
    fired, late = (scene.task(run, name).trigger_id for name in ("p0", "p1"))
    assert fired is not None
    assert late is not None
    scene.wait(60)
    trigger_rows.resume([trigger_rows.Result(fired, payload="in time")], scene.now)
    scene.phase("enforce_timeouts")
    assert trigger_rows.resume([trigger_rows.Result(late, payload="too late")], scene.now) == []
    assert scene.states(run) == {"p0": "scheduled", "p1": "failed"}
    assert scene.task(run, "p0").next_kwargs == {"event": "in time"}
    assert (scene.task(run, "p1").reason or "").startswith("Its deferral timed out.")


def test_a_sensor_whose_deferral_timed_out_says_itself_what_that_means(scene: Scene) -> None:
    run = scene.run(scene.dag(parallel(2, "dag", tasks={"p1": {"judges_deferral": True}})))
    scene.tick()
    for task in (scene.task(run, "p0"), scene.task(run, "p1")):
        scene.begin(task)
        scene.end(task, state="deferred", defer={"classpath": "a.T", "next_method": "on", "timeout": 1.0})
    scene.wait(2)
    assert scene.phase("enforce_timeouts") == 2
    assert scene.states(run) == {"p0": "failed", "p1": "scheduled"}
    row = scene.task(run, "p1")
    assert (row.next_method, row.next_kwargs) == ("__fail__", {"error": "Trigger timeout"})


def test_S_55_deferrals_are_ended_in_chunks(scene: Scene) -> None:
    run = scene.run(scene.dag(parallel(5)))
    scene.tick()
    tasks = list(TaskInstance.objects.order_by("pk"))
    scene.begin(*tasks)
    for task in tasks:
        scene.end(task, state="deferred", defer={"classpath": "a.T", "next_method": "on", "timeout": 1.0})
    scene.wait(2)
    scene.limit = 2
    assert [scene.phase("enforce_timeouts") for _ in range(4)] == [2, 2, 1, 0]
    assert scene.counts(dag_run=run) == {"failed": 5}


def test_S_45_a_run_with_a_logical_date_ahead_waits_for_it_without_a_look_a_second(scene: Scene) -> None:
    run = scene.run(scene.dag("a"), logical_date=at(3600))
    scene.settle()
    run.refresh_from_db()
    assert (run.state, run.next_check_at, scene.states(run)) == ("running", at(3600), {"a": None})
    assert scene.phase("schedule_tasks") == 0
    scene.wait(3600)
    scene.tick()
    assert scene.states(run) == {"a": "queued"}


def test_S_45_a_run_whose_time_has_not_come_stays_queued(scene: Scene) -> None:
    run = scene.run("a")
    DagRun.objects.update(run_after=at(60))
    scene.settle()
    assert ended(scene, run)[0] == "queued"
    scene.wait(60)
    scene.tick()
    assert ended(scene, run)[0] == "running"


def test_I3_an_alarm_that_is_due_outlives_a_partial_look(scene: Scene) -> None:
    """A retry falls due; before its alarm is served, another task's end makes the run be looked at around that task."""
    names = ", ".join(f"t{n}" for n in range(30))
    run = scene.run(scene.dag(f"a >> b; c >> d; e >> [{names}]", tasks={"a": {"retries": 1, "retry_delay": 10.0}}))
    scene.settle()
    attempts = [scene.task(run, name) for name in ("a", "c", "e")]
    scene.begin(*attempts)
    scene.end(attempts[0], state="failed")
    scene.settle()
    run.refresh_from_db()
    assert run.next_check_at == at(10)
    scene.wait(11)
    scene.end(attempts[1])
    scene.phase("schedule_tasks")
    run.refresh_from_db()
    assert (scene.states(run)["a"], scene.states(run)["d"]) == ("up_for_retry", "scheduled")
    assert run.next_check_at == at(10)
    scene.tick()
    assert scene.states(run)["a"] == "queued"


# ── rows that people touch ───────────────────────────────────────────────────────────────────────────────────────────


def test_BC_71_a_run_whose_task_row_was_deleted_makes_it_anew(scene: Scene) -> None:
    dag = scene.dag(shape("a >> b >> c", max_active_runs=1, tasks={"c": {"max_active_tis_per_dag": 1}}))
    run, waiting = scene.runs(dag, 2)
    scene.tick()
    scene.begin(scene.task(run, "a"))
    TaskInstance.objects.filter(dag_run=run, task_id="b").delete()
    scene.end(scene.task(run, "a"))
    scene.settle()
    assert scene.states(run) == {"a": "success", "b": "queued", "c": None}
    for task_id in ("b", "c"):
        scene.begin(scene.task(run, task_id))
        scene.end(scene.task(run, task_id))
        scene.settle()
    assert (ended(scene, run)[0], ended(scene, waiting)[0]) == ("success", "running")


def test_BC_71_the_sweep_finds_a_run_whose_last_moving_row_was_deleted(scene: Scene) -> None:
    run = scene.run("a >> b")
    scene.settle()
    TaskInstance.objects.filter(dag_run=run, task_id="a").delete()
    scene.settle()
    assert ended(scene, run)[0] == "running"
    scene.wait(scene.conf.sweep_seconds)
    scene.settle()
    assert scene.states(run) == {"a": "queued", "b": None}


def test_BC_73_clearing_two_of_four_tasks_runs_two(scene: Scene) -> None:
    run = scene.run(scene.dag(parallel(4)))
    scene.play(run)
    handed = len(scene.executor.handed)
    transitions.tasks("clear", [scene.task(run, name).pk for name in ("p0", "p2")], scene.now)
    transitions.runs("clear", [run.pk], scene.now)
    scene.play(run)
    assert sorted(scene.handed()[handed:]) == ["p0", "p2"]
    assert dict(TaskInstance.objects.values_list("task_id", "try_number")) == {"p0": 2, "p1": 1, "p2": 2, "p3": 1}


def test_BC_75_a_task_marked_failed_stays_failed_whatever_its_process_says(scene: Scene) -> None:
    run = scene.run("a")
    scene.tick()
    task = scene.task(run, "a")
    scene.begin(task)
    transitions.tasks("mark_failed", [task.pk], scene.now, reason="marked failed by ann")
    TaskInstance.objects.update(note="Ann: the file is broken", note_by="ann")
    before = TaskInstance.objects.values().get()
    assert scene.end(task) == 0
    late = "Try 1 reported success at 2026-03-01 12:00:00 UTC, after this was decided otherwise."
    after = TaskInstance.objects.values().get()
    assert after == before | {"note": f"Ann: the file is broken\n{late}"}
    assert (before["state"], before["reason"]) == ("failed", "marked failed by ann")
    scene.tick()
    assert ended(scene, run)[0] == "failed"


def test_BC_75_a_report_that_is_written_twice_or_is_of_a_cleared_try_leaves_no_note(scene: Scene) -> None:
    run = scene.run("a; b")
    scene.tick()
    twice, cleared = scene.task(run, "a"), scene.task(run, "b")
    scene.begin(twice, cleared)
    assert scene.end(twice) == 1
    transitions.tasks("mark_failed", [cleared.pk], scene.now)
    transitions.tasks("clear", [cleared.pk], scene.now)
    assert scene.end(twice, cleared) == 0
    assert list(TaskInstance.objects.values_list("note", flat=True)) == [None, None]


def test_BC_77_clearing_a_task_of_a_running_run_keeps_the_runs_start(scene: Scene) -> None:
    run = scene.run("a; b")
    scene.tick()
    first = scene.task(run, "a")
    scene.begin(first)
    scene.end(first)
    scene.wait(100)
    transitions.tasks("clear", [first.pk], scene.now)
    scene.tick()
    run.refresh_from_db()
    assert (run.start_date, run.first_start_date, run.clear_number) == (at(0), at(0), 0)
    assert scene.states(run) == {"a": "queued", "b": "queued"}
    past = TaskInstanceHistory.objects.get()
    assert (past.task_id, past.try_number, past.state, past.start_date) == ("a", 1, "success", at(0))


def test_BC_77_a_run_that_is_done_again_keeps_when_it_first_started(scene: Scene) -> None:
    run = scene.run("a")
    scene.play(run)
    scene.wait(100)
    transitions.tasks("clear", [scene.task(run, "a").pk], scene.now)
    transitions.runs("clear", [run.pk], scene.now)
    scene.tick()
    run.refresh_from_db()
    assert (run.start_date, run.first_start_date, run.clear_number) == (at(100), at(0), 1)


def test_BC_53_a_branch_skips_what_has_not_begun_and_leaves_what_runs(scene: Scene) -> None:
    run = scene.run(scene.dag("branch >> [late, other]; late", tasks={"late": {"trigger_rule": "always"}}))
    scene.tick()
    branch, late = scene.task(run, "branch"), scene.task(run, "late")
    assert scene.begin(branch, late) == 2
    scene.end(branch, skip=["late", "other"])
    assert scene.states(run) == {"branch": "success", "late": "running", "other": "skipped"}
    assert scene.end(late) == 1
    scene.tick()
    assert (scene.states(run)["late"], ended(scene, run)[0]) == ("success", "success")


def test_a_branch_skips_a_follower_that_waits_for_its_next_try(scene: Scene) -> None:
    run = scene.run(
        scene.dag("branch >> late", tasks={"late": {"trigger_rule": "always", "retries": 1, "retry_delay": 60.0}})
    )
    scene.tick()
    branch, late = scene.task(run, "branch"), scene.task(run, "late")
    scene.begin(branch, late)
    scene.end(late, state="failed", retry=True)
    scene.end(branch, skip=["late"])
    late.refresh_from_db()
    assert (late.state, late.reason, late.next_at) == ("skipped", "Task branch skipped it.", None)


def test_a_follower_that_is_cleared_without_its_branch_is_skipped_again(scene: Scene) -> None:
    run = scene.run(
        scene.dag("branch >> [one, two]", tasks={"branch": {"can_skip_downstream": True}, "two": {"retries": 0}})
    )
    scene.tick()
    branch = scene.task(run, "branch")
    scene.begin(branch)
    scene.end(branch, skip=["one"])
    scene.tick()
    transitions.tasks("clear", [scene.task(run, "one").pk], scene.now)
    scene.tick()
    assert scene.states(run) == {"branch": "success", "one": "skipped", "two": "queued"}
    transitions.tasks("clear", [scene.task(run, name).pk for name in ("branch", "one")], scene.now)
    scene.tick()
    assert scene.states(run) == {"branch": "queued", "one": None, "two": "queued"}
    assert scene.task(run, "branch").skips is None


def test_S_47_a_look_overwrites_nothing_that_a_person_did_meanwhile(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = scene.run("a; b")
    scene.phase("start_runs")
    move = transitions.tasks

    def a_person_is_faster(verb: str, *arguments: object, **columns: object) -> list[int]:
        if verb == "schedule":
            move("mark_success", [scene.task(run, "a").pk], scene.now)
        return move(verb, *arguments, **columns)  # type: ignore[arg-type]

    monkeypatch.setattr(transitions, "tasks", a_person_is_faster)
    scene.phase("schedule_tasks")
    assert scene.states(run) == {"a": "success", "b": "scheduled"}


START = {"classpath": "a.Trigger", "kwargs": {"n": 1}, "next_method": "go_on", "next_kwargs": {"k": 2}, "timeout": 60.0}


def test_a_task_that_begins_in_a_trigger_is_deferred_without_a_hand_out(scene: Scene) -> None:
    run = scene.run(scene.dag("first >> waits", tasks={"waits": {"start_trigger": START, "retries": 1}}))
    scene.tick()
    scene.begin(scene.task(run, "first"))
    scene.end(scene.task(run, "first"))
    scene.tick()
    waits = scene.task(run, "waits")
    assert (waits.state, waits.try_number, waits.fence, waits.start_date) == ("deferred", 1, 1, scene.now)
    assert (waits.next_method, waits.next_kwargs) == ("go_on", {"k": 2})
    assert waits.trigger_timeout == scene.now + timedelta(seconds=60)
    stored = Trigger.objects.get(pk=waits.trigger_id)
    assert (stored.classpath, stored.kwargs, stored.dag_id) == ("a.Trigger", {"n": 1}, "dag")
    assert scene.handed() == ["first"]
    transitions.tasks("resume", [waits.pk], scene.now)
    scene.tick()
    scene.begin(waits)
    assert (scene.task(run, "waits").try_number, scene.handed()) == (1, ["first", "waits"])
    scene.end(waits, state="failed", retry=True)
    scene.wait(1000)
    scene.tick()
    waits.refresh_from_db()
    assert (waits.state, waits.try_number, Trigger.objects.count()) == ("deferred", 2, 2)


# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_BC_79_a_run_is_judged_by_its_leaves(scene: Scene) -> None:
    run = scene.run(scene.dag("start >> middle >> end", tasks={"end": {"trigger_rule": "all_done"}}))
    scene.play(run, middle="failed")
    assert scene.states(run) == {"start": "success", "middle": "failed", "end": "success"}
    assert run.state == "success"


@pytest.mark.parametrize(("state", "kind"), [("success", "dag_success"), ("failed", "dag_failure")])
def test_BC_93_S_27_the_callback_of_a_run_is_written_with_its_end(scene: Scene, state: str, kind: str) -> None:
    run = scene.run(scene.dag(shape("a", callbacks=("success", "failure"))))
    scene.tick()
    scene.begin(scene.task(run, "a"))
    scene.end(scene.task(run, "a"), state=state)
    phase = next(phase for phase in PHASES if phase.name == "schedule_tasks")
    with suppress(InterruptedError), db.atomic():
        phase.run(scene.a_tick())
        assert Callback.objects.count() == 1
        raise InterruptedError  # killed before the commit: the end is gone, and the callback with it
    assert (ended(scene, run)[0], Callback.objects.count()) == ("running", 0)
    scene.phase("schedule_tasks")
    callback = Callback.objects.get()
    assert (ended(scene, run)[0], callback.kind, callback.dag_run_id, callback.state) == (
        state,
        kind,
        run.pk,
        "pending",
    )
    assert callback.dedupe_key == f"{kind}:{run.pk}:0"


def test_BC_93_a_run_that_is_cleared_and_ends_again_asks_again(scene: Scene) -> None:
    run = scene.run(scene.dag(shape("a", callbacks=("success",))))
    scene.play(run)
    transitions.tasks("clear", [scene.task(run, "a").pk], scene.now)
    transitions.runs("clear", [run.pk], scene.now)
    scene.play(run)
    assert list(Callback.objects.order_by("pk").values_list("dedupe_key", flat=True)) == [
        f"dag_success:{run.pk}:0",
        f"dag_success:{run.pk}:1",
    ]


def test_S_44_no_callback_row_is_written_where_the_dag_has_none(scene: Scene) -> None:
    run = scene.run(scene.dag(shape("a", callbacks=("failure",))))
    scene.play(run)
    assert not Callback.objects.exists()


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S_46_a_running_run_follows_the_newest_version_with_its_own_tasks(scene: Scene) -> None:
    run = scene.run("a >> b")
    scene.tick()
    newest = scene.dag(shape("a >> c")).latest_version_id
    scene.begin(scene.task(run, "a"))
    scene.end(scene.task(run, "a"))
    scene.tick()
    assert scene.states(run) == {"a": "success", "b": "removed", "c": "queued"}
    assert (scene.task(run, "b").reason, scene.task(run, "c").dag_version_id) == (
        "Task b is no longer part of the DAG.",
        newest,
    )
    run.refresh_from_db()
    assert run.dag_version_id == newest
    scene.play(run)
    assert run.state == "success"


@pytest.mark.parametrize("follows", [True, False])
def test_a_run_cleared_with_the_newest_version_has_all_tasks_of_it(scene: Scene, follows: bool) -> None:
    scene.conf = replace(scene.conf, runs_follow_newest_version=follows)
    run = scene.run("a >> b")
    scene.play(run)
    newest = scene.dag(shape("a >> b; c >> b")).latest_version_id
    wanted = selection.Wanted("dag", tasks=["b"], runs=[run.run_id])
    clear.clear(access.system("person", "ann"), wanted, scene.now, latest_version=True)
    assert scene.states(run) == {"a": "success", "b": None, "c": None}
    assert scene.task(run, "b").dag_version_id == newest
    scene.play(run)
    run.refresh_from_db()
    assert (run.state, run.dag_version_id) == ("success", newest)
    assert scene.states(run) == {"a": "success", "b": "success", "c": "success"}


def test_S_10_a_scheduled_task_that_left_the_dag_is_removed_and_not_handed_out(scene: Scene) -> None:
    scene.executor.slots = 0
    run = scene.run("a; b")
    scene.tick()
    assert scene.states(run) == {"a": "scheduled", "b": "scheduled"}
    scene.dag(shape("a"))
    Wake.objects.add([run.pk], "new_version", scene.now)
    scene.executor.slots = 5
    scene.tick()
    assert (scene.states(run), scene.handed()) == ({"a": "queued", "b": "removed"}, ["a"])


def renewed(scene: Scene, run: DagRun, text: str, **fields: object) -> None:
    """The DAG gets a version, and the run is looked at."""
    scene.dag(shape(text, **fields))
    Wake.objects.add([run.pk], "new_version", scene.now)
    scene.phase("schedule_tasks")


def test_a_task_that_comes_back_in_a_newer_version_is_taken_back(scene: Scene) -> None:
    run = scene.run("a >> b >> c")
    scene.phase("start_runs")
    renewed(scene, run, "a >> c")
    assert scene.states(run) == {"a": "scheduled", "b": "removed", "c": None}
    renewed(scene, run, "a >> b >> c", tasks={"b": {"retries": 2}})
    back = scene.task(run, "b")
    assert (back.state, back.reason, back.end_date, back.max_tries) == (None, None, None, 2)
    scene.play(run)
    assert (run.state, scene.states(run)) == ("success", {"a": "success", "b": "success", "c": "success"})


def test_what_has_not_begun_follows_the_pool_and_the_rest_of_a_newer_version(scene: Scene) -> None:
    run = scene.run("first >> [waits, again]")
    scene.tick()
    scene.begin(scene.task(run, "first"))
    new = {"pool": "other", "pool_slots": 2, "priority_weight": 7, "weight_rule": "absolute", "retries": 3}
    new["queue"] = "q"
    renewed(scene, run, "first >> [waits, again]", tasks={"first": new, "waits": new})
    version = DagModel.objects.get().latest_version_id
    columns = ("pool", "pool_slots", "priority_weight", "max_tries", "queue", "dag_version_id")
    rows = {row[0]: row[1:] for row in TaskInstance.objects.values_list("task_id", *columns)}
    assert rows["waits"] == ("other", 2, 7, 3, "q", version)
    assert rows["again"] == ("default_pool", 1, 1, 0, "default", version)
    assert rows["first"][:5] == ("default_pool", 1, 3, 0, "default")


def test_a_newer_version_adds_no_unindexed_instance_to_an_expanded_task(scene: Scene) -> None:
    two = {"mapped": {"style": "expand", "inputs": {"x": {"literal": 2}}}}
    run = scene.run(scene.dag("many >> end", tasks={"many": two}))
    scene.tick(2)
    renewed(scene, run, "many >> [end, more]", tasks={"many": two})
    kept = TaskInstance.objects.filter(task_id="many").order_by("map_index")
    assert list(kept.values_list("map_index", "state")) == [(0, "queued"), (1, "queued")]
    assert scene.task(run, "more").state is None


def test_a_task_that_is_not_mapped_any_more_has_one_instance_without_an_index(scene: Scene) -> None:
    two = {"mapped": {"style": "expand", "inputs": {"x": {"literal": 2}}}}
    run = scene.run(scene.dag("first >> many", tasks={"many": two}))
    scene.tick(2)
    assert TaskInstance.objects.filter(task_id="many").count() == 2
    renewed(scene, run, "first >> many")
    rows = TaskInstance.objects.filter(task_id="many").order_by("map_index")
    assert list(rows.values_list("map_index", "state")) == [(-1, None), (0, "removed"), (1, "removed")]
    scene.play(run)
    assert run.state == "success"


def test_an_ended_run_does_not_follow_a_newer_version(scene: Scene) -> None:
    run = scene.run("a")
    scene.play(run)
    version = run.dag_version_id
    scene.dag(shape("a >> b"))
    transitions.tasks("mark_failed", [scene.task(run, "a").pk], scene.now)
    scene.tick()
    run.refresh_from_db()
    assert (run.dag_version_id, scene.states(run), run.state) == (version, {"a": "failed"}, "success")
