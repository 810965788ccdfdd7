"""Keyed limits and rates: what tasks of any DAG share (F-07, I2, I4)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_app.models import Limit, LimitUse, TaskInstance, transitions
from scheduler_app.scheduler.process import _sleep_seconds
from tests.scheduler.scene import Scene
from tests.shapes import parallel


def limit(name: str, amount: int, per_seconds: float | None = None) -> Limit:
    return Limit.objects.create(name=name, amount=amount, per_seconds=per_seconds)


def takes(**units: int) -> dict[str, Any]:
    return {"limits": tuple({"name": name} | ({"units": n} if n > 1 else {}) for name, n in sorted(units.items()))}


def queued(**filters: object) -> int:
    return TaskInstance.objects.filter(state="queued", **filters).count()


def begin_and_end(scene: Scene, *tasks: TaskInstance) -> None:
    scene.begin(*tasks)
    scene.end(*tasks)


def test_a_limit_counts_the_tasks_of_all_dags_together(scene: Scene) -> None:
    limit("warehouse", 3)
    for name in ("one", "two"):
        scene.run(scene.dag(parallel(3, name, tasks={"*": takes(warehouse=1)})))
    scene.tick()
    assert scene.counts() == {"queued": 3, "scheduled": 3}
    begin_and_end(scene, *TaskInstance.objects.filter(state="queued")[:1])
    scene.tick()
    assert scene.counts() == {"success": 1, "queued": 3, "scheduled": 2}


def test_several_limits_are_taken_at_once_or_not_at_all(scene: Scene) -> None:
    limit("warehouse", 1)
    limit("crm", 2)
    both = takes(warehouse=1, crm=1)
    tasks = {"a": {"priority_weight": 9, **both}, "b": {"priority_weight": 8, **both}, "c": takes(crm=1)}
    run = scene.run(scene.dag("a; b; c", tasks=tasks))
    scene.tick()
    assert scene.states(run) == {"a": "queued", "b": "scheduled", "c": "queued"}


def test_a_deferred_task_keeps_what_it_takes_and_goes_on_before_any_newcomer(scene: Scene) -> None:
    limit("warehouse", 1)
    run = scene.run(scene.dag("a; b", tasks={"*": takes(warehouse=1), "a": {"priority_weight": 2}}))
    scene.tick()
    first = scene.task(run, "a")
    scene.begin(first)
    scene.end(first, state="deferred", defer={"classpath": "a.T", "kwargs": {}, "next_method": "on"})
    TaskInstance.objects.filter(task_id="b").update(priority_weight=99)
    scene.tick(2)
    assert scene.states(run) == {"a": "deferred", "b": "scheduled"}
    transitions.tasks("resume", [first.pk], scene.now)
    scene.executor.slots = 0
    scene.tick()
    scene.executor.slots = 9
    scene.tick()
    assert scene.states(run) == {"a": "queued", "b": "scheduled"}


def test_a_rate_lets_so_many_start_in_every_window(scene: Scene) -> None:
    limit("crm", 3, 60.0)
    scene.run(scene.dag(parallel(8, tasks={"*": takes(crm=1)})))
    scene.tick()
    assert queued() == 3
    begin_and_end(scene, *TaskInstance.objects.filter(state="queued"))
    scene.wait(59.9)
    scene.tick()
    assert queued() == 0
    scene.wait(0.2)
    scene.tick()
    assert queued() == 3
    assert list(LimitUse.objects.order_by("at").values_list("units", flat=True)) == [3, 3]


def test_a_rate_counts_what_was_handed_out_even_when_it_has_ended(scene: Scene) -> None:
    limit("crm", 1, 60.0)
    run = scene.run(scene.dag("a", tasks={"a": {**takes(crm=1), "retries": 1, "retry_delay": 1.0}}))
    scene.tick()
    task = scene.task(run, "a")
    scene.begin(task)
    scene.end(task, state="failed", error={"type": "Error", "message": "boom"})
    for seconds, state in ((2, "scheduled"), (50, "scheduled"), (10, "queued")):
        scene.wait(seconds)
        scene.tick(2)
        assert scene.states(run) == {"a": state}, seconds


def test_the_loop_sleeps_no_longer_than_until_a_rate_has_room(scene: Scene) -> None:
    limit("crm", 1, 0.25)
    scene.run(scene.dag("a; b", tasks={"*": takes(crm=1)}))
    scene.tick()
    scene.wait(0.1)
    tick = scene.a_tick()
    assert scene.loop.tick(tick) == 0
    assert tick.due_at == scene.now + timedelta(seconds=0.15)
    assert _sleep_seconds(tick, 1.0) == pytest.approx(0.15)
    scene.now = tick.due_at
    scene.tick()
    assert queued() == 2


def test_rows_behind_a_clogged_page_are_reached_and_the_sleep_is_known(scene: Scene) -> None:
    limit("crm", 1, 60.0)
    limit("warehouse", 1)
    scene.limit = 4
    scene.run(scene.dag(parallel(20, "low", tasks={"*": {**takes(warehouse=1), "priority_weight": 9}})))
    scene.run(scene.dag(parallel(3, "rated", tasks={"*": {**takes(crm=1), "priority_weight": 5}})))
    scene.run(scene.dag(parallel(3, "free", tasks={"*": {"priority_weight": 1}})))
    scene.tick()
    found = {name: queued(dag_id=name) for name in ("low", "rated", "free")}
    assert found == {"low": 1, "rated": 1, "free": 3}
    tick = scene.a_tick()
    scene.loop.tick(tick)
    assert tick.due_at == scene.now + timedelta(seconds=60)


def test_many_rows_that_a_limit_blocks_are_passed_over_together(
    scene: Scene, django_assert_max_num_queries: Any
) -> None:
    limit("warehouse", 1)
    blocked = {**takes(warehouse=1), "priority_weight": 9}
    for number in range(30):
        scene.run(scene.dag(parallel(40, f"d{number:02}", max_active_tasks=999, tasks={"*": blocked})))
    run = scene.run(scene.dag("z", "zz"))
    scene.phase("start_runs", "schedule_tasks")
    scene.limit = 16
    with django_assert_max_num_queries(20):
        scene.phase("queue_tasks")
    assert scene.states(run) == {"z": "queued"}
    assert scene.counts() == {"queued": 2, "scheduled": 1199}


def test_a_task_that_takes_several_gets_them_though_narrow_ones_keep_coming(scene: Scene) -> None:
    limit("warehouse", 4)
    scene.run(scene.dag(parallel(4, "narrow", tasks={"*": takes(warehouse=1)})))
    scene.tick()
    wide = scene.run(scene.dag("w", "wide", tasks={"w": {**takes(warehouse=3), "priority_weight": 5}}))
    scene.tick()
    scene.wait(scene.conf.wide_task_wait_seconds + 1)
    scene.run(scene.dag(parallel(4, "late", tasks={"*": takes(warehouse=1)})))
    for ending, state in ((2, "scheduled"), (1, "queued")):
        begin_and_end(scene, *TaskInstance.objects.filter(dag_id="narrow", state="queued")[:ending])
        scene.tick(2)
        assert scene.states(wide) == {"w": state}
    assert queued(dag_id="late") == 0


def test_a_limit_that_is_not_there_or_closed_blocks_and_one_that_is_too_small_fails(scene: Scene) -> None:
    limit("shut", 0)
    limit("small", 1)
    run = scene.run(scene.dag("a; b; c", tasks={"a": takes(nowhere=1), "b": takes(shut=1), "c": takes(small=2)}))
    scene.tick()
    assert scene.states(run) == {"a": "scheduled", "b": "scheduled", "c": "failed"}
    assert scene.task(run, "c").reason == "It can never run: it takes 2 of limit small, which has 1."
    limit("nowhere", 1)
    Limit.objects.filter(name="shut").update(amount=1)
    scene.tick()
    assert scene.states(run) == {"a": "queued", "b": "queued", "c": "failed"}


def test_instances_of_a_mapped_task_take_what_the_task_takes(scene: Scene) -> None:
    limit("warehouse", 2)
    mapped = {"style": "expand", "inputs": {"x": {"literal": 5}}}
    scene.run(scene.dag("m", tasks={"m": {**takes(warehouse=1), "mapped": mapped}}))
    scene.phase("start_runs", "schedule_tasks", "schedule_tasks", "queue_tasks")
    assert scene.counts() == {"queued": 2, "scheduled": 3}


def test_a_row_that_somebody_moved_meanwhile_takes_nothing_of_a_rate(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit("crm", 5, 60.0)
    scene.run(scene.dag("a; b", tasks={"*": takes(crm=1)}))
    scene.phase("start_runs", "schedule_tasks")
    move = transitions.tasks_then

    def first_only(then: str, verb: str, ids: Any, *rest: Any, **named: Any) -> Any:
        return move(then, verb, list(ids)[:1] if verb == "queue" else ids, *rest, **named)

    monkeypatch.setattr(transitions, "tasks_then", first_only)
    scene.phase("queue_tasks")
    assert list(LimitUse.objects.values_list("units", flat=True)) == [1]
