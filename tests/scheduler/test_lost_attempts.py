"""Attempts that die, executors that forget, schedulers that go: nothing runs twice, nothing is lost (I1, I3)."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError

from scheduler_app import metrics
from scheduler_app.engine.dag import to_doc
from scheduler_app.executors.base import Lost
from scheduler_app.models import (
    Callback,
    DagRun,
    DagVersion,
    Job,
    TaskInstance,
    TaskInstanceHistory,
    db,
    graphs,
    transitions,
)
from scheduler_app.runner.decide import decide
from scheduler_app.scheduler import lost
from scheduler_app.scheduler.phases.adopt_orphans import LOST_HAND_OUTS_LIMIT
from tests.rows import at
from tests.scheduler.scene import Ledger, Scene
from tests.shapes import parallel, shape

RETRIES = {"*": {"retries": 3, "retry_delay": 60.0, "callbacks": ("failure", "retry")}}


def running(scene: Scene, **task: object) -> tuple[DagRun, TaskInstance]:
    """A run with one task, whose first attempt runs."""
    run = scene.run(scene.dag("a", tasks={"a": {**RETRIES["*"], **task}}))
    scene.tick()
    attempt = scene.task(run, "a")
    assert scene.begin(attempt) == 1
    return run, attempt


def test_BC_57_a_killed_process_is_retried_with_its_reason(scene: Scene) -> None:
    run, attempt = running(scene, retries=10)
    scene.die(attempt, "Its process was killed by signal 9.")
    scene.phase("sync_executors")
    attempt.refresh_from_db()
    assert (attempt.state, attempt.try_number, attempt.reason) == (
        "up_for_retry",
        1,
        "Its process was killed by signal 9.",
    )
    assert attempt.next_at == at(60)
    past = TaskInstanceHistory.objects.get()
    assert (past.try_number, past.state, past.reason) == (1, "failed", "Its process was killed by signal 9.")
    scene.wait(61)
    scene.tick()
    assert (scene.states(run), scene.begin(attempt)) == ({"a": "queued"}, 1)
    assert scene.task(run, "a").try_number == 2


def test_a_retry_comes_at_one_instant_whoever_judges_the_failed_try(scene: Scene) -> None:
    backs_off = {"a": {"retries": 2, "retry_delay": 60.0, "retry_exponential_backoff": 2.0}}
    run = scene.run(scene.dag("a", tasks=backs_off))
    scene.tick()
    task = scene.task(run, "a")
    scene.begin(task)
    reported = decide(scene.claims[task.pk], {"state": "failed"}, "", "running", scene.now)
    scene.die(task)
    scene.phase("sync_executors")
    assert scene.task(run, "a").next_at == reported.columns["next_at"]


def test_S_18_a_running_task_whose_process_is_gone_does_not_wait_for_its_heartbeat(scene: Scene) -> None:
    run, attempt = running(scene, retries=0)
    scene.die(attempt)
    scene.tick()
    scene.tick()
    assert scene.states(run) == {"a": "failed"}
    run.refresh_from_db()
    assert (run.state, run.end_date) == ("failed", scene.now)


def test_BC_91_a_lost_attempt_with_retries_left_asks_for_the_retry_callback_exactly_once(scene: Scene) -> None:
    _, attempt = running(scene)
    scene.wait(scene.conf.task_heartbeat_timeout_seconds + 1, beats=False)
    scene.phase("fail_lost_tasks")
    scene.phase("fail_lost_tasks")
    scene.executor.gone.append(Lost(attempt.pk, 1, "gone"))
    scene.phase("sync_executors")
    assert list(Callback.objects.values_list("kind", "try_number")) == [("task_retry", 1)]


def test_BC_91_the_failure_callback_comes_with_the_last_try(scene: Scene) -> None:
    _, attempt = running(scene, retries=0)
    scene.die(attempt)
    scene.phase("sync_executors")
    assert list(Callback.objects.values_list("kind", "task_instance_id")) == [("task_failure", attempt.pk)]


def test_no_callback_is_asked_for_an_attempt_that_reported_before_it_was_judged(scene: Scene) -> None:
    run, attempt = running(scene, retries=0)
    scene.die(attempt)
    scene.end(attempt)
    scene.phase("sync_executors")
    assert scene.states(run) == {"a": "success"}
    assert not Callback.objects.exists()


def test_no_callback_is_asked_for_an_attempt_that_reports_while_it_is_judged(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, attempt = running(scene, retries=0)
    scene.die(attempt)
    move = transitions.tasks

    def the_report_is_faster(verb: str, *arguments: Any, **columns: Any) -> list[int]:
        if verb == "fail":
            scene.end(attempt)
        return move(verb, *arguments, **columns)

    monkeypatch.setattr(transitions, "tasks", the_report_is_faster)
    assert scene.phase("sync_executors") == 0
    assert scene.states(run) == {"a": "success"}
    assert not Callback.objects.exists()


def test_BC_43_S_16_what_an_executor_told_survives_a_phase_that_fails(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, attempt = running(scene)
    scene.die(attempt)

    def away(*_: object, **__: object) -> list[int]:
        raise OperationalError("the database is restarting")

    with monkeypatch.context() as broken:
        broken.setattr(transitions, "tasks", away)
        broken.setattr(db, "close", lambda: None)
        assert scene.phase("sync_executors") == 0
    assert scene.states(run) == {"a": "running"}
    assert scene.phase("sync_executors") == 1
    assert scene.states(run) == {"a": "up_for_retry"}
    assert scene.phase("sync_executors") == 0


def test_I5_one_loss_that_cannot_be_judged_holds_up_no_other(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    run = scene.run(scene.dag(parallel(3, tasks=RETRIES)))
    scene.tick()
    tasks = list(TaskInstance.objects.order_by("pk"))
    scene.begin(*tasks)
    for task in tasks:
        scene.die(task)
    judge = lost._judge

    def flawed(row: TaskInstance, *rest: object) -> object:
        return 1 / 0 if row.pk == tasks[1].pk else judge(row, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(lost, "_judge", flawed)
    assert scene.phase("sync_executors") == 2
    assert scene.states(run) == {"p0": "up_for_retry", "p1": "running", "p2": "up_for_retry"}
    monkeypatch.undo()
    scene.wait(scene.conf.task_heartbeat_timeout_seconds + 1, beats=False)
    scene.phase("fail_lost_tasks")
    assert scene.states(run)["p1"] == "up_for_retry"


def test_what_an_executor_says_is_stored_without_what_no_row_can_hold(scene: Scene) -> None:
    run, attempt = running(scene)
    scene.die(attempt, "exit\0 code 1")
    scene.phase("sync_executors")
    assert scene.task(run, "a").reason == "exit code 1"


def test_BC_45_S_14_a_hand_out_that_nobody_starts_is_handed_out_again_and_counted(scene: Scene) -> None:
    run = scene.run("a")
    scene.tick()
    task = scene.task(run, "a")
    assert task.handed_out_at == scene.now
    counted = metrics.ORPHANS_ADOPTED._value.get()
    scene.wait(scene.conf.queued_timeout_seconds - 1)
    scene.tick()
    assert len(scene.executor.handed) == 1
    scene.wait(11)
    scene.phase("adopt_orphans", "queue_tasks", "publish")
    assert [hand_out.fence for hand_out in scene.executor.handed] == [1, 2]
    assert metrics.ORPHANS_ADOPTED._value.get() == counted + 1
    assert scene.begin(task, fence=1) == 0
    assert scene.begin(task, fence=2) == 1
    assert scene.task(run, "a").try_number == 1


def test_BC_45_nothing_depends_on_what_the_executor_remembers(scene: Scene) -> None:
    """It still lists the key of the try before; the next hand-out has another fence and is taken all the same."""
    run, attempt = running(scene, retry_delay=0.0)
    scene.end(attempt, state="failed")
    scene.wait(1)
    scene.tick()
    assert [(h.ti_id, h.fence) for h in scene.executor.handed] == [(attempt.pk, 1), (attempt.pk, 2)]
    assert scene.begin(attempt) == 1
    scene.end(attempt)
    assert scene.states(run) == {"a": "success"}


def test_BC_47_a_scheduler_that_dies_before_it_stamps_hands_the_same_start_out_twice_and_one_begins(
    scene: Scene,
) -> None:
    run = scene.run("a")
    scene.executor.fails, scene.executor.takes_before_it_fails = RuntimeError("killed"), True
    scene.tick()
    task = scene.task(run, "a")
    assert (task.state, task.fence, task.handed_out_at) == ("queued", 1, None)
    assert scene.begin(task, fence=1) == 1
    scene.executor.fails = None
    scene.tick()
    assert [hand_out.fence for hand_out in scene.executor.handed] == [1]
    assert scene.begin(task, fence=1) == 0
    task.refresh_from_db()
    assert (task.state, task.try_number, task.fence) == ("running", 1, 1)


def test_BC_49_S_13_nothing_is_published_from_a_transaction_that_did_not_commit(scene: Scene) -> None:
    run = scene.run("a")
    scene.phase("start_runs", "schedule_tasks")
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(metrics.TASKS_QUEUED, "inc", lambda *_: 1 / 0)
        scene.phase("queue_tasks")
    scene.phase("publish")
    assert (scene.states(run), scene.executor.handed) == ({"a": "scheduled"}, [])
    scene.phase("queue_tasks", "publish")
    assert (scene.states(run), len(scene.executor.handed)) == ({"a": "queued"}, 1)


def test_S_14_a_crash_after_the_commit_and_before_the_hand_out_loses_nothing(scene: Scene) -> None:
    run = scene.run("a")
    scene.phase("start_runs", "schedule_tasks", "queue_tasks")
    assert (scene.states(run), scene.executor.handed) == ({"a": "queued"}, [])
    scene.wait(scene.conf.lease_seconds + 1, beats=False)
    dead, scene.job = scene.job, scene.new_job()
    scene.phase("adopt_orphans", "queue_tasks", "publish")
    assert [hand_out.fence for hand_out in scene.executor.handed] == [2]
    dead.refresh_from_db()
    assert (dead.state, dead.end_date) == ("failed", scene.now)
    assert scene.task(run, "a").queued_by_job_id == scene.job.pk


def test_BC_51_S_49_a_running_task_without_an_owner_is_left_alone(scene: Scene) -> None:
    run, attempt = running(scene)
    TaskInstance.objects.filter(pk=attempt.pk).update(queued_by_job_id=None)
    for _ in range(10):
        scene.wait(60)
        scene.phase("adopt_orphans", "fail_lost_tasks")
    attempt.refresh_from_db()
    assert (attempt.state, attempt.fence, attempt.try_number) == ("running", 1, 1)
    assert not TaskInstanceHistory.objects.exists()
    assert scene.states(run) == {"a": "running"}


def test_S_49_a_running_task_outlives_the_scheduler_that_queued_it(scene: Scene) -> None:
    _, attempt = running(scene)
    Job.objects.update(state="failed")
    scene.wait(30)
    scene.phase("adopt_orphans", "fail_lost_tasks")
    attempt.refresh_from_db()
    assert (attempt.state, attempt.fence) == ("running", 1)
    assert scene.end(attempt) == 1


def test_S_50_orphans_are_adopted_whatever_state_their_run_is_in(scene: Scene) -> None:
    run = scene.run("a")
    scene.phase("start_runs", "schedule_tasks", "queue_tasks")
    Job.objects.update(state="failed")
    transitions.runs("mark_failed", [run.pk], scene.now)
    assert scene.phase("adopt_orphans", job=scene.new_job()) == 1
    assert scene.states(run) == {"a": "scheduled"}


def test_S_52_a_hand_out_that_never_begins_is_given_up_with_a_reason(scene: Scene) -> None:
    run = scene.run(scene.dag("a", tasks={"a": {"callbacks": ("failure",)}}))
    for _ in range(LOST_HAND_OUTS_LIMIT):
        scene.phase("start_runs", "schedule_tasks", "queue_tasks", "publish")
        assert scene.states(run) == {"a": "queued"}
        scene.wait(scene.conf.queued_timeout_seconds + 1)
        scene.phase("adopt_orphans")
    task = scene.task(run, "a")
    assert (task.state, task.try_number, task.fence) == ("failed", 0, LOST_HAND_OUTS_LIMIT)
    assert task.reason == "It was handed out 10 times and never began: is an executor for its queue up?"
    assert list(Callback.objects.values_list("kind", flat=True)) == ["task_failure"]
    scene.settle()
    run.refresh_from_db()
    assert run.state == "failed"


def test_S_52_a_stale_workers_report_changes_nothing(scene: Scene) -> None:
    run, attempt = running(scene, retry_delay=0.0)
    old = scene.claims[attempt.pk]
    scene.wait(scene.conf.task_heartbeat_timeout_seconds + 1, beats=False)
    scene.phase("fail_lost_tasks")
    scene.wait(1)
    scene.tick()
    scene.begin(attempt)
    scene.claims[attempt.pk], current = old, scene.claims[attempt.pk]
    assert scene.end(attempt) == 0
    assert scene.states(run) == {"a": "running"}
    scene.claims[attempt.pk] = current
    assert scene.end(attempt) == 1


def test_BC_55_a_redelivered_hand_out_loses_the_claim_and_changes_nothing(scene: Scene) -> None:
    run, attempt = running(scene)
    before = TaskInstance.objects.values().get()
    scene.wait(60, beats=False)
    assert scene.begin(attempt, fence=1) == 0
    assert TaskInstance.objects.values().get() == before
    assert scene.end(attempt) == 1
    assert scene.states(run) == {"a": "success"}


def test_S_19_a_late_event_of_the_hand_out_before_a_deferral_changes_nothing(scene: Scene) -> None:
    run, attempt = running(scene, retries=0)
    scene.end(attempt, state="deferred", defer={"classpath": "a.T", "kwargs": {}, "next_method": "on"})
    transitions.tasks("resume", [attempt.pk], scene.now)
    scene.tick()
    scene.executor.gone.append(Lost(attempt.pk, 1, "exit code 1"))
    assert scene.phase("sync_executors") == 0
    task = scene.task(run, "a")
    assert (task.state, task.fence, task.try_number) == ("queued", 2, 1)


def test_S_15_two_events_of_two_tries_do_not_take_each_others_place(scene: Scene) -> None:
    run, attempt = running(scene, retry_delay=0.0)
    scene.end(attempt, state="failed")
    scene.wait(1)
    scene.tick()
    scene.executor.gone += [Lost(attempt.pk, 2, "the second is gone"), Lost(attempt.pk, 1, "the first is gone")]
    assert scene.phase("sync_executors") == 1
    task = scene.task(run, "a")
    assert (task.state, task.lost_hand_outs) == ("scheduled", 1)


def test_S_20_S_21_a_task_that_never_began_goes_back_and_never_becomes_success(scene: Scene) -> None:
    run = scene.run(scene.dag("a", tasks=RETRIES))
    scene.tick()
    scene.executor.gone.append(Lost(scene.task(run, "a").pk, 1, "finished"))
    scene.phase("sync_executors")
    task = scene.task(run, "a")
    assert (task.state, task.try_number, task.end_date, task.lost_hand_outs) == ("scheduled", 0, None, 1)
    assert not Callback.objects.exists()


def test_S_20_S_27_a_lost_task_ends_though_its_dags_definition_is_gone(scene: Scene) -> None:
    run, attempt = running(scene)
    TaskInstance.objects.update(max_tries=0, dag_version_id=uuid4())
    scene.die(attempt)
    assert scene.phase("sync_executors") == 1
    assert scene.states(run) == {"a": "failed"}


def test_one_definition_that_cannot_be_read_does_not_stop_the_judging_of_others(scene: Scene) -> None:
    bad = scene.run(scene.dag(shape("a", "bad")))
    good = scene.run(scene.dag(shape("a", "good", tasks=RETRIES)))
    scene.tick()
    scene.begin(scene.task(bad, "a"), scene.task(good, "a"))
    document = to_doc(shape("a", "bad")) | {"schema_version": 999}
    DagVersion.objects.filter(dag="bad").update(document=document)
    graphs.forget()
    scene.wait(scene.conf.task_heartbeat_timeout_seconds + 1, beats=False)
    scene.phase("fail_lost_tasks")
    assert (scene.states(bad), scene.states(good)) == ({"a": "failed"}, {"a": "up_for_retry"})


def test_S_53_liveness_is_judged_by_the_ticks_time_and_the_heartbeat_alone(scene: Scene) -> None:
    limit = scene.conf.task_heartbeat_timeout_seconds
    run, _ = running(scene)
    scene.wait(limit - 1, beats=False)
    assert scene.phase("fail_lost_tasks") == 0
    scene.wait(1, beats=False)
    assert scene.phase("fail_lost_tasks") == 1
    assert scene.states(run) == {"a": "up_for_retry"}


def test_an_attempt_that_was_cleared_while_it_ran_goes_on_as_a_try_without_a_callback(scene: Scene) -> None:
    run, attempt = running(scene)
    transitions.tasks("restart", [attempt.pk], scene.now)
    scene.die(attempt)
    scene.phase("sync_executors")
    assert scene.states(run) == {"a": "up_for_retry"}
    assert not Callback.objects.exists()


def test_one_executor_that_fails_holds_up_no_other(scene: Scene) -> None:
    other = Ledger(10, "Other")
    scene.executors["Other"] = other
    scene.executor.fails = RuntimeError("broker away")
    tasks = {"*": {"priority_weight": 9}, "b": {"executor": "Other"}}
    run = scene.run(scene.dag("a; b", tasks=tasks))
    scene.tick()
    assert (len(other.handed), len(scene.executor.handed)) == (1, 0)
    scene.executor.fails = None
    scene.tick()
    assert (len(other.handed), len(scene.executor.handed)) == (1, 1)
    assert set(scene.states(run).values()) == {"queued"}


def test_BC_133_hand_outs_that_an_executor_refuses_do_not_hide_those_of_another(scene: Scene) -> None:
    other = Ledger(10, "Other")
    scene.executors["Other"] = other
    scene.executor.refuses = True
    names = "; ".join(f"p{n}" for n in range(8))
    tasks = {"*": {"priority_weight": 9}, "z": {"executor": "Other", "priority_weight": 1}}
    scene.run(scene.dag(f"{names}; z", tasks=tasks))
    scene.phase("start_runs", "schedule_tasks", "queue_tasks")
    scene.limit = 4
    scene.phase("publish")
    assert len(other.handed) == 1


def test_a_full_window_of_lost_tasks_is_worked_off(scene: Scene) -> None:
    run = scene.run(scene.dag(parallel(10, tasks=RETRIES)))
    scene.tick()
    scene.begin(*TaskInstance.objects.filter(dag_run=run))
    scene.wait(scene.conf.task_heartbeat_timeout_seconds + 1, beats=False)
    scene.limit = 4
    assert [scene.phase("fail_lost_tasks") for _ in range(4)] == [4, 4, 2, 0]
