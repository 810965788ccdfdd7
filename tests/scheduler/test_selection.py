"""Who gets a slot: limits, pools, order, and that nothing runnable is hidden behind what is blocked (I2, I4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_app.models import DagRun, Pool, TaskInstance, transitions
from tests.rows import at
from tests.scheduler.scene import Ledger, Scene
from tests.shapes import parallel, shape


def ready(scene: Scene) -> None:
    """Runs start and their roots are found ready; nobody gets a slot yet."""
    scene.phase("start_runs", "schedule_tasks")


def admit(scene: Scene) -> int:
    return scene.phase("queue_tasks")


def queued(**filters: object) -> int:
    return TaskInstance.objects.filter(state="queued", **filters).count()


def test_BC_01_a_dag_at_its_limit_hides_nobody(scene: Scene) -> None:
    scene.limit, scene.executor.slots = 32, 32
    low = scene.dag(parallel(200, "low", max_active_tasks=1))
    other = scene.dag(parallel(50, "other", max_active_tasks=1000))
    scene.run(low)
    scene.wait(10)
    scene.run(other)
    ready(scene)
    assert scene.counts() == {"scheduled": 250}
    assert admit(scene) == 32
    assert (queued(dag_id="low"), queued(dag_id="other")) == (1, 31)


def test_BC_01_the_same_while_the_first_task_runs(scene: Scene) -> None:
    scene.limit = 32
    scene.run(scene.dag(parallel(200, "low", max_active_tasks=1)))
    scene.tick()
    (first,) = TaskInstance.objects.filter(state="queued")
    assert scene.begin(first) == 1
    scene.wait(10)
    scene.run(scene.dag(parallel(50, "other", max_active_tasks=1000)))
    for _ in range(4):
        scene.tick()
    assert queued(dag_id="other") == 50
    assert TaskInstance.objects.filter(dag_id="low", state__in=["queued", "running"]).count() == 1


def test_BC_03_a_full_pool_blocks_no_other_pool(scene: Scene) -> None:
    scene.limit = 16
    scene.pool("small", 2)
    scene.pool("large", 100)
    scene.run(scene.dag(parallel(2, "holders", tasks={"*": {"pool": "small"}}, max_active_tasks=999)))
    scene.tick()
    tasks = {"*": {"pool": "small", "priority_weight": 100}}
    scene.run(scene.dag(parallel(500, "wanting", tasks=tasks, max_active_tasks=999)))
    scene.run(scene.dag(parallel(20, "lucky", tasks={"*": {"pool": "large"}}, max_active_tasks=999)))
    ready(scene)
    assert admit(scene) == 20
    assert (queued(pool="small"), queued(dag_id="lucky")) == (2, 20)


def test_BC_05_a_task_wider_than_its_pool_fails_at_once_with_the_reason(scene: Scene) -> None:
    scene.pool("three", 3)
    wide = {"pool": "three", "pool_slots": 5}
    run = scene.run(scene.dag("w0; w1; w2; w3; n", tasks={"*": {"pool": "three"}, **{f"w{i}": wide for i in range(4)}}))
    scene.tick()
    assert scene.states(run) == {"w0": "failed", "w1": "failed", "w2": "failed", "w3": "failed", "n": "queued"}
    task = scene.task(run, "w3")
    assert task.reason == "It can never run: it needs 5 slots of pool three, which has 3."
    assert (task.end_date, task.try_number, task.fence) == (scene.now, 0, 0)


def test_S_03_every_wide_task_is_judged_and_none_stays_in_the_window(scene: Scene) -> None:
    scene.limit = 4
    scene.pool("three", 3)
    wide = {"pool": "three", "pool_slots": 5, "priority_weight": 50}
    scene.run(scene.dag(parallel(8, "wide", tasks={"*": wide})))
    scene.run(scene.dag("n", "narrow", tasks={"n": {"pool": "three"}}))
    ready(scene)
    for _ in range(3):
        admit(scene)
    assert scene.counts() == {"failed": 8, "queued": 1}


def test_S_05_the_failure_of_a_task_that_can_never_run_asks_for_its_callback(scene: Scene) -> None:
    scene.pool("three", 3)
    run = scene.run(scene.dag("w", tasks={"w": {"pool": "three", "pool_slots": 5, "callbacks": ("failure",)}}))
    scene.tick()
    assert scene.states(run) == {"w": "failed"}
    assert [(c.kind, c.task_instance_id, c.state) for c in run.callbacks.all()] == [
        ("task_failure", scene.task(run, "w").pk, "pending")
    ]


def test_BC_07_priority_holds_across_pools(scene: Scene) -> None:
    scene.pool("p", 10)
    scene.pool("q", 10)
    run = scene.run(
        scene.dag(
            "a; b; c",
            max_active_tasks=2,
            tasks={
                "a": {"pool": "p", "priority_weight": 3},
                "b": {"pool": "p", "priority_weight": 1},
                "c": {"pool": "q", "priority_weight": 2},
            },
        )
    )
    scene.tick()
    assert scene.states(run) == {"a": "queued", "b": "scheduled", "c": "queued"}


def test_S_06_low_priority_work_of_one_pool_does_not_take_the_executors_last_slot(scene: Scene) -> None:
    scene.executor.slots = 1
    scene.pool("a_first", 10)
    scene.pool("z_last", 10)
    low = scene.run(scene.dag("l", "low", tasks={"l": {"pool": "a_first", "priority_weight": 1}}))
    high = scene.run(scene.dag("h", "high", tasks={"h": {"pool": "z_last", "priority_weight": 9}}))
    ready(scene)
    assert admit(scene) == 1
    assert (scene.states(low), scene.states(high)) == ({"l": "scheduled"}, {"h": "queued"})


def test_BC_09_a_deferred_task_keeps_its_slot_in_a_pool_that_counts_deferred_ones(scene: Scene) -> None:
    scene.pool("one", 1, include_deferred=True)
    run = scene.run(scene.dag("t1; t2", tasks={"*": {"pool": "one"}, "t1": {"pool": "one", "priority_weight": 2}}))
    scene.tick()
    first = scene.task(run, "t1")
    scene.begin(first)
    scene.end(first, state="deferred", defer={"classpath": "a.T", "kwargs": {}, "next_method": "on"})
    scene.tick(3)
    assert scene.states(run) == {"t1": "deferred", "t2": "scheduled"}


def test_BC_09_a_resumed_task_goes_before_any_newcomer(scene: Scene) -> None:
    scene.pool("one", 1, include_deferred=True)
    run = scene.run(scene.dag("t1; t2", tasks={"*": {"pool": "one"}, "t1": {"pool": "one", "priority_weight": 2}}))
    scene.tick()
    first = scene.task(run, "t1")
    scene.begin(first)
    scene.end(first, state="deferred", defer={"classpath": "a.T", "kwargs": {}, "next_method": "on"})
    TaskInstance.objects.filter(task_id="t2").update(priority_weight=99)
    scene.tick()
    scene.wait(300)
    transitions.tasks("resume", [first.pk], scene.now)
    scene.tick()
    assert scene.states(run) == {"t1": "queued", "t2": "scheduled"}
    scene.begin(first)
    scene.end(first)
    scene.tick()
    assert scene.states(run) == {"t1": "success", "t2": "queued"}


def test_BC_09_a_resumed_task_that_waits_for_the_executor_keeps_its_pool_slot(scene: Scene) -> None:
    scene.pool("one", 1, include_deferred=True)
    other = Ledger(5, "Other")
    scene.executors["Other"] = other
    tasks = {"t1": {"pool": "one", "priority_weight": 2}, "t2": {"pool": "one", "executor": "Other"}}
    run = scene.run(scene.dag("t1; t2", tasks=tasks))
    scene.tick()
    first = scene.task(run, "t1")
    scene.begin(first)
    scene.end(first, state="deferred", defer={"classpath": "a.T", "kwargs": {}, "next_method": "on"})
    transitions.tasks("resume", [first.pk], scene.now)
    scene.executor.slots = 0
    scene.tick(2)
    assert scene.states(run) == {"t1": "scheduled", "t2": "scheduled"}
    assert other.handed == []


def test_so_many_resumed_tasks_are_read_at_once_and_those_behind_take_their_turn(scene: Scene) -> None:
    scene.pool("ten", 10, include_deferred=True)
    scene.executors["Other"] = Ledger(5, "Other")
    names = [f"t{n}" for n in range(10)]
    tasks = {"*": {"pool": "ten"}, "new": {"pool": "ten", "executor": "Other"}}
    run = scene.run(scene.dag("; ".join([*names, "new"]), tasks=tasks))
    scene.tick()
    deferred = [scene.task(run, name) for name in names]
    scene.begin(*deferred)
    for task in deferred:
        scene.end(task, state="deferred", defer={"classpath": "a.T", "kwargs": {}, "next_method": "on"})
    transitions.tasks("resume", [task.pk for task in deferred], scene.now)
    scene.limit, scene.executor.slots = 1, 0
    assert scene.states(run)["new"] == "scheduled"
    scene.tick(2)
    assert scene.counts(dag_run=run) == {"scheduled": 10, "queued": 1}
    assert scene.states(run)["new"] == "queued"
    scene.executor.slots = 100
    scene.settle()
    assert scene.counts(dag_run=run) == {"queued": 10, "scheduled": 1}


def test_a_resumed_task_whose_run_was_queued_again_keeps_no_slot_from_the_runs_before_it(scene: Scene) -> None:
    scene.pool("one", 1, include_deferred=True)
    dag = scene.dag("t", max_active_runs=1, tasks={"t": {"pool": "one"}})
    back, other = scene.runs(dag, 2)
    scene.tick()
    task = scene.task(back, "t")
    scene.begin(task)
    scene.end(task, state="deferred", defer={"classpath": "a.T", "kwargs": {}, "next_method": "on"})
    transitions.runs("mark_queued", [back.pk], scene.now)
    DagRun.objects.filter(pk=back.pk).update(run_after=scene.now + timedelta(hours=1))
    scene.tick()
    assert scene.run_states(dag) == ["running", "queued"]
    transitions.tasks("resume", [task.pk], scene.now)
    scene.tick(2)
    assert (scene.states(other), scene.states(back)) == ({"t": "queued"}, {"t": "scheduled"})


def test_S_02_an_overfull_pool_does_not_cancel_the_room_of_another(scene: Scene) -> None:
    scene.pool("default_pool", 1)  # its many slots would outweigh what is missing
    scene.pool("over", 9)
    scene.pool("free", 3)
    scene.run(scene.dag(parallel(9, "fill", tasks={"*": {"pool": "over"}})))
    scene.tick()
    Pool.objects.filter(pool="over").update(slots=1)
    scene.run(scene.dag(parallel(9, "more", tasks={"*": {"pool": "over"}})))
    scene.run(scene.dag(parallel(3, "fine", tasks={"*": {"pool": "free"}})))
    scene.tick()
    assert (queued(dag_id="fill"), queued(dag_id="more"), queued(dag_id="fine")) == (9, 0, 3)


def test_S_04_tasks_of_a_pool_that_does_not_exist_use_up_no_window(scene: Scene) -> None:
    scene.limit = 8
    scene.run(
        scene.dag(parallel(40, "lost", tasks={"*": {"pool": "nowhere", "priority_weight": 9}}, max_active_tasks=99))
    )
    scene.run(scene.dag(parallel(5, "found", max_active_tasks=99)))
    ready(scene)
    assert admit(scene) == 5
    assert scene.counts(dag_id="lost") == {"scheduled": 40}


def test_S_07_free_slots_are_kept_for_a_wide_task_that_has_waited_long(scene: Scene) -> None:
    scene.pool("four", 4)
    scene.run(scene.dag(parallel(4, "narrow", tasks={"*": {"pool": "four"}})))
    scene.tick()
    wide = scene.run(scene.dag("w", "wide", tasks={"w": {"pool": "four", "pool_slots": 3, "priority_weight": 5}}))
    scene.tick()
    scene.wait(scene.conf.wide_task_wait_seconds + 1)
    scene.run(scene.dag(parallel(4, "late", tasks={"*": {"pool": "four"}})))
    for number, state in ((2, "scheduled"), (3, "queued")):
        done = list(TaskInstance.objects.filter(dag_id="narrow", state="queued").order_by("pk")[: number - 1])
        scene.begin(*done)
        scene.end(*done)
        scene.tick(2)
        assert scene.states(wide) == {"w": state}, number
    assert queued(dag_id="late") == 0


def test_S_08_a_deferred_task_counts_against_max_active_tasks(scene: Scene) -> None:
    run = scene.run(scene.dag("a; b", max_active_tasks=1))
    scene.tick()
    first = scene.task(run, "a")
    scene.begin(first)
    scene.end(first, state="deferred", defer={"classpath": "a.T", "kwargs": {}, "next_method": "on"})
    scene.tick(2)
    assert scene.states(run) == {"a": "deferred", "b": "scheduled"}


def test_S_08_active_tasks_of_another_run_do_not_count_against_a_run(scene: Scene) -> None:
    one, two = scene.runs(scene.dag("a; b", max_active_tasks=1), 2)
    scene.tick()
    assert (scene.states(one), scene.states(two)) == ({"a": "queued", "b": "scheduled"},) * 2


def test_S_11_a_row_that_a_person_ends_while_it_is_admitted_is_not_queued(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = scene.run("a; b")
    ready(scene)
    move = transitions.tasks_then

    def a_person_is_faster(then: str, verb: str, *arguments: Any, **columns: Any) -> list[dict[str, Any]]:
        if verb == "queue":
            transitions.tasks("mark_success", [scene.task(run, "a").pk], scene.now)
        return move(then, verb, *arguments, **columns)

    monkeypatch.setattr(transitions, "tasks_then", a_person_is_faster)
    assert admit(scene) == 1
    assert scene.states(run) == {"a": "success", "b": "queued"}
    assert scene.task(run, "a").fence == 0


def test_S_11_each_hand_out_has_a_fence_of_its_own_and_no_trace_of_the_one_before(scene: Scene) -> None:
    run = scene.run(scene.dag("a", tasks={"a": {"retries": 1, "retry_delay": 0.0}}))
    scene.tick()
    task = scene.task(run, "a")
    TaskInstance.objects.filter(pk=task.pk).update(external_executor_id="celery-1", heartbeat_at=scene.now)
    scene.begin(task)
    scene.end(task, state="failed")
    scene.wait(1)
    scene.tick()
    again = scene.task(run, "a")
    assert (again.state, again.fence, again.external_executor_id, again.heartbeat_at) == ("queued", 2, None, None)
    assert (again.queued_when, again.queued_by_job_id, again.job_id) == (at(1), scene.job.pk, None)


@pytest.mark.parametrize("how", ["ended", "paused", "stale", "held"])
def test_S_12_S_63_a_run_that_stands_still_hands_nothing_out(scene: Scene, how: str) -> None:
    run = scene.run("a")
    ready(scene)
    if how == "ended":
        transitions.runs("fail", [run.pk], scene.now)
    elif how == "held":
        DagRun.objects.filter(pk=run.pk).update(held_at=scene.now)
    else:
        type(run.dag).objects.filter(pk="dag").update(**{f"is_{how}": True})
    assert admit(scene) == 0
    assert scene.states(run) == {"a": "scheduled"}


def test_rows_that_stand_still_use_up_no_window(scene: Scene) -> None:
    """More paused DAGs and held runs than a page and a look at the keys can hold."""
    scene.limit = 4
    for number in range(6):
        scene.run(scene.dag(parallel(100, f"paused{number}", tasks={"*": {"priority_weight": 9}})))
    held = scene.dag(parallel(100, "mixed", tasks={"*": {"priority_weight": 9}}, max_active_tasks=999))
    first, _ = scene.runs(held, 2)
    run = scene.run(scene.dag("a", "fine"))
    scene.limit = 512
    ready(scene)
    type(run.dag).objects.filter(pk__startswith="paused").update(is_paused=True)
    DagRun.objects.filter(pk=first.pk).update(held_at=scene.now)
    scene.limit = 4
    admit(scene)
    assert scene.states(run) == {"a": "queued"}
    assert (queued(dag_id__startswith="paused"), queued(dag_run=first)) == (0, 0)
    assert queued(dag_id="mixed") > 0


def test_BC_01_a_run_at_its_limit_does_not_hide_another_run_of_the_same_dag(scene: Scene) -> None:
    scene.limit = 16
    dag = scene.dag(parallel(100, max_active_tasks=1))
    older = scene.run(dag, prefix="older")
    scene.tick()
    younger = scene.run(dag, prefix="younger")
    scene.tick(2)
    assert scene.counts(dag_run=older) == {"queued": 1, "scheduled": 99}
    assert scene.counts(dag_run=younger) == {"queued": 1, "scheduled": 99}


@pytest.mark.parametrize("limit", ["max_active_tis_per_dag", "max_active_tis_per_dagrun"])
def test_BC_01_a_task_at_its_limit_does_not_hide_another_task_of_its_run(
    scene: Scene, limit: str, django_assert_max_num_queries: Any
) -> None:
    """Whatever number of its instances stand before it: they are dropped in one statement, not page by page."""
    scene.limit = 16
    dag = scene.dag(
        "m; u",
        max_active_tasks=1000,
        tasks={
            "m": {"priority_weight": 9, limit: 1, "mapped": {"style": "expand", "inputs": {"x": {"literal": 1500}}}},
            "u": {"priority_weight": 1},
        },
    )
    run = scene.run(dag)
    scene.limit = 512
    scene.phase("start_runs", "schedule_tasks", "schedule_tasks")
    assert scene.counts() == {"scheduled": 1501}
    scene.limit = 16
    with django_assert_max_num_queries(20):
        admit(scene)
    assert scene.task(run, "u").state == "queued"
    assert scene.counts() == {"queued": 2, "scheduled": 1499}


def test_BC_01_a_full_executor_does_not_hide_work_for_another_in_the_same_pool(scene: Scene) -> None:
    scene.limit = 8
    scene.executor.slots = 0
    scene.executors["Other"] = Ledger(10, "Other")
    tasks = {"*": {"priority_weight": 9}, "last": {"executor": "Other"}}
    names = "; ".join(f"p{n}" for n in range(120))
    run = scene.run(scene.dag(f"{names}; last", tasks=tasks, max_active_tasks=999))
    ready(scene)
    assert admit(scene) == 1
    assert scene.task(run, "last").state == "queued"


def test_admission_looks_past_any_number_of_blocked_dags(scene: Scene) -> None:
    scene.limit = 2048
    tasks = {"*": {"priority_weight": 9, "max_active_tis_per_dag": 1}}
    for number in range(70):
        scene.runs(scene.dag(shape("a", f"d{number:03}", tasks=tasks)), 2)
    run = scene.run(scene.dag("z", "zz"))
    ready(scene)
    scene.limit = 8
    scene.executor.slots = 71
    for _ in range(6):
        admit(scene)
    assert scene.states(run) == {"z": "queued"}
    assert scene.counts() == {"queued": 71, "scheduled": 70}


def test_equal_priorities_are_shared_fairly_between_dags(scene: Scene) -> None:
    scene.executor.slots = 6
    for name in ("early", "late"):
        scene.run(scene.dag(parallel(20, name, max_active_tasks=999)))
        scene.phase("start_runs", "schedule_tasks")
        scene.wait(60)
    admit(scene)
    assert (queued(dag_id="early"), queued(dag_id="late")) == (3, 3)


def test_a_hold_with_an_end_keeps_a_task_back_until_then(scene: Scene) -> None:
    run = scene.run("a; b")
    ready(scene)
    TaskInstance.objects.filter(task_id="a").update(held_at=scene.now, held_until=scene.now + timedelta(seconds=60))
    admit(scene)
    assert scene.states(run) == {"a": "scheduled", "b": "queued"}
    scene.wait(61)
    admit(scene)
    assert scene.states(run) == {"a": "queued", "b": "queued"}


@pytest.mark.parametrize(("per", "queued"), [("run", 4), ("dag", 2)])
def test_max_active_tasks_limits_a_run_or_all_runs_of_a_dag(scene: Scene, per: str, queued: int) -> None:
    scene.set(max_active_tasks_per=per)
    scene.runs(scene.dag("a; b; c", max_active_tasks=2), 2)
    scene.tick()
    assert scene.counts() == {"queued": queued, "scheduled": 6 - queued}


def test_I4_with_ageing_a_task_of_low_priority_gets_its_turn_though_others_keep_coming(scene: Scene) -> None:
    scene.set(priority_ageing_seconds=60.0)
    scene.limit, scene.executor.slots = 8, 1
    low = scene.run(scene.dag("l", "low", tasks={"l": {"priority_weight": 1}}))
    urgent = scene.dag("u", "urgent", tasks={"u": {"priority_weight": 4}})
    for minute in range(6):
        scene.run(urgent, prefix=f"m{minute}_")
        ready(scene)
        admit(scene)
        done = list(TaskInstance.objects.filter(state="queued"))
        scene.begin(*done)
        scene.end(*done)
        if scene.states(low) == {"l": "success"}:
            break
        scene.wait(60)
    assert (scene.states(low), minute) == ({"l": "success"}, 3)
    assert scene.counts(dag_id="urgent") == {"success": 3, "scheduled": 1}


def test_I4_without_ageing_priority_goes_before_any_age(scene: Scene) -> None:
    scene.executor.slots = 1
    low = scene.run(scene.dag("l", "low", tasks={"l": {"priority_weight": 1}}))
    scene.wait(1_000_000)
    scene.run(scene.dag("u", "urgent", tasks={"u": {"priority_weight": 2}}))
    ready(scene)
    admit(scene)
    assert scene.states(low) == {"l": "scheduled"}
