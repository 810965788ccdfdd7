"""What would run when, and which limit makes whom wait: a virtual clock over the pure parts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.engine.forecast import MOST_TASKS, Planned, Timed, TooMuch, forecast
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.limits import Allowance
from scheduler_app.engine.run_plans import RunPlan
from tests.shapes import shape

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def planned(text: str, *slots: float, dag_id: str = "dag", seconds: float = 10.0, **fields: Any) -> Planned:
    """A DAG with slots so many seconds after noon; each of its tasks takes ``seconds``."""
    graph = Graph(shape(text, dag_id, **fields))
    plans = [RunPlan(at(slot), at(slot), at(slot), at(slot), at(slot).isoformat()) for slot in slots]
    usual = dict.fromkeys(graph.tasks, seconds)
    return Planned(graph, plans, graph.dag.max_active_runs or 16, graph.dag.max_active_tasks or 16, usual)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def play(*dags: Planned, slots: int = 10, **pools: int) -> list[Timed]:
    return forecast(dags, {"default_pool": 128, **pools}, slots)


def tasks(found: list[Timed]) -> dict[str, tuple[float, float, str | None]]:
    """Task → (seconds after noon at which it begins, seconds that it waited, for what)."""
    return {
        f"{one.dag_id}.{one.task_id}": ((one.started_at - NOON).total_seconds(), one.waited_seconds, one.bound_by)
        for one in found
        if one.task_id and one.started_at
    }


def test_tasks_follow_each_other_and_the_run_ends_with_the_last() -> None:
    found = play(planned("a >> [b, c] >> d", 0))
    assert tasks(found) == {
        "dag.a": (0, 0, None),
        "dag.b": (10, 0, None),
        "dag.c": (10, 0, None),
        "dag.d": (20, 0, None),
    }
    (run,) = [one for one in found if one.task_id is None]
    assert (run.started_at, run.ended_at, run.waits) == (at(0), at(30), {})


def test_a_run_waits_for_the_one_before_it_where_one_may_be_under_way() -> None:
    found = play(planned("a", 0, 4, max_active_runs=1))
    runs = [(one.started_at, one.waits) for one in found if one.task_id is None]
    assert runs == [(at(0), {}), (at(10), {"max_active_runs": 6.0})]


@pytest.mark.parametrize(
    ("fields", "options", "code"),
    [
        ({}, {"slots": 1}, "executor_full"),
        ({"tasks": {"*": {"pool": "narrow"}}}, {"narrow": 1}, "pool_full"),
        ({"max_active_tasks": 1}, {}, "max_active_tasks"),
    ],
)
def test_the_limit_that_binds_is_named(fields: dict[str, Any], options: dict[str, int], code: str) -> None:
    found = tasks(play(planned("a; b", 0, **fields), **options))
    assert found == {"dag.a": (0, 0, None), "dag.b": (10, 10, code)}


def test_the_heavier_task_goes_first_as_in_the_scheduler() -> None:
    light, heavy = planned("a", 0, dag_id="light"), planned("a", 0, dag_id="heavy", tasks={"a": {"priority_weight": 5}})
    assert tasks(play(light, heavy, slots=1)) == {"heavy.a": (0, 0, None), "light.a": (10, 10, "executor_full")}


def test_what_can_never_run_is_said_to_wait_for_its_cause() -> None:
    found = play(planned("a >> b", 0, 0.5, tasks={"a": {"pool": "gone"}}, max_active_runs=1))
    run, behind, task = sorted(found, key=lambda one: (one.task_id or "", one.slot))
    assert (run.started_at, run.ended_at) == (at(0), None)
    assert (behind.started_at, behind.bound_by) == (None, "max_active_runs")
    assert (task.task_id, task.started_at, task.bound_by) == ("a", None, "pool_unknown")


def test_an_empty_task_takes_neither_time_nor_slot() -> None:
    found = play(planned("a >> b", 0, tasks={"a": {"is_empty": True}}), slots=1)
    assert tasks(found) == {"dag.a": (0, 0, None), "dag.b": (0, 0, None)}


def test_more_than_it_can_play_is_refused() -> None:
    with pytest.raises(TooMuch, match="name DAGs, or fewer days"):
        play(planned("a", *range(MOST_TASKS + 1)))


def test_a_keyed_limit_is_free_again_when_its_holder_ends() -> None:
    limits = {"*": {"limits": ({"name": "db"},)}}
    found = forecast([planned("a; b", 0, tasks=limits)], {"default_pool": 9}, 9, {"db": Allowance(1)})
    assert tasks(found) == {"dag.a": (0, 0, None), "dag.b": (10, 10, "limit_full")}


def test_a_rate_lets_the_next_go_when_its_window_has_room() -> None:
    limits = {"*": {"limits": ({"name": "crm"},)}}
    found = forecast([planned("a; b; c; d", 0, tasks=limits)], {"default_pool": 9}, 9, {"crm": Allowance(2, 60.0)})
    assert [when for when, _, _ in tasks(found).values()] == [0, 0, 60, 60]
    assert tasks(found)["dag.d"] == (60, 60, "rate_full")


def test_a_limit_that_does_not_exist_is_waited_for_without_end() -> None:
    found = play(planned("a", 0, tasks={"a": {"limits": ({"name": "gone"},)}}))
    assert [(one.started_at, one.bound_by) for one in found if one.task_id] == [(None, "limit_unknown")]


def test_a_schedule_that_does_not_catch_up_runs_the_latest_of_the_slots_that_found_no_room() -> None:
    found = play(replace(planned("a", 0, 2, 4, 20, max_active_runs=1), misfire="latest"))
    runs = [(one.slot, one.started_at, one.missed) for one in found if one.task_id is None]
    assert runs == [(at(0), at(0), False), (at(4), at(10), False), (at(20), at(20), False), (at(2), None, True)]


def test_slots_are_given_in_the_order_that_the_scheduler_uses() -> None:
    """Each DAG has its turn among tasks of one priority; with ageing, who waits longest goes before who is urgent."""
    mixed = planned("h1; h2; l1", 0, dag_id="mixed", tasks={"h1": {"priority_weight": 2}, "h2": {"priority_weight": 2}})
    other = planned("l2", 0, dag_id="other")
    begins = tasks(play(mixed, other, slots=1))
    assert sorted(begins, key=lambda name: begins[name][0]) == ["mixed.h1", "mixed.h2", "mixed.l1", "other.l2"]
    late = planned("u", 5, 15, 25, 35, dag_id="urgent", max_active_runs=9, tasks={"u": {"priority_weight": 3}})
    low = planned("l; m", 0, dag_id="low")
    pools = {"default_pool": 9}
    for ageing, begins_at in ((0.0, 50.0), (10.0, 30.0)):
        found = tasks(forecast([low, late], pools, 1, ageing_seconds=ageing))
        assert found["low.m"][0] == begins_at, ageing


def test_a_slot_that_finds_no_room_is_skipped_where_the_dag_says_so() -> None:
    found = play(replace(planned("a", 0, 4, 12, max_active_runs=1), overlap="skip"))
    runs = [(one.slot, one.started_at, one.missed) for one in found if one.task_id is None]
    assert runs == [(at(0), at(0), False), (at(12), at(12), False), (at(4), None, True)]


def test_the_oldest_run_is_cancelled_for_the_next_one_where_the_dag_says_so() -> None:
    found = play(replace(planned("a >> b", 0, 14, max_active_runs=1), overlap="cancel_oldest"), slots=1)
    times = [(one.task_id, one.started_at, one.ended_at, one.cancelled) for one in found]
    assert times == [
        (None, at(0), at(14), True),
        ("a", at(0), at(10), False),
        ("b", at(10), at(14), True),
        (None, at(14), at(34), False),
        ("a", at(14), at(24), False),
        ("b", at(24), at(34), False),
    ]
