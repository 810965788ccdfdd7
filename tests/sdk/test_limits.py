"""``limits=`` of a task: what an author writes, and what the document says."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_app.sdk import DAG, EmptyOperator, Limit, Rate, task
from scheduler_app.sdk.serialize import serialize


def documents(*limits: Any) -> Any:
    with DAG("d") as dag:
        EmptyOperator(task_id="a", limits=list(limits))
    return serialize(dag)["tasks"][0].get("limits")


def test_names_limits_and_rates_are_sorted_by_name() -> None:
    assert documents("gpu", Rate("crm_api", per_minute=60), Limit("warehouse", at_once=4, units=2)) == [
        {"name": "crm_api", "amount": 60, "per_seconds": 60.0},
        {"name": "gpu"},
        {"name": "warehouse", "units": 2, "amount": 4},
    ]


@pytest.mark.parametrize(
    ("rate", "amount", "seconds"),
    [
        (Rate("r", per_second=5), 5, 1.0),
        (Rate("r", per_hour=7), 7, 3600.0),
        (Rate("r", per_day=9), 9, 86_400.0),
    ],
)
def test_a_rate_may_be_of_any_unit_of_time(rate: Rate, amount: int, seconds: float) -> None:
    assert documents(rate) == [{"name": "r", "amount": amount, "per_seconds": seconds}]


def test_default_args_and_mapped_tasks_have_limits_too() -> None:
    with DAG("d", default_args={"limits": ["shared"]}) as dag:

        @task
        def plain() -> None: ...

        @task(limits=[Limit("own", at_once=1)])
        def own(x: int) -> None: ...

        plain()
        own.expand(x=[1, 2])
    limits = {one["task_id"]: one["limits"] for one in serialize(dag)["tasks"]}
    assert limits == {"plain": [{"name": "shared"}], "own": [{"name": "own", "amount": 1}]}


def test_a_task_without_limits_says_nothing() -> None:
    assert documents() is None


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (Limit("a b"), "limits of task 'a': A limit is called 'a b'"),
        (Limit("x", at_once=0), "Limit 'x': its number is a whole number from 1 up, not 0."),
        (Limit("x", units=0), "Limit 'x': units is a whole number from 1 up, not 0."),
        (Limit("x", at_once=2, units=3), "Limit 'x' has 2, so no task can take 3 units of it."),
        (Rate("x", per_second=1, per_minute=9), "Rate 'x' has 2 numbers: give one of per_second, per_minute"),
        (7, "limits of task 'a' are names, Limit(…) and Rate(…), not 7."),
    ],
)
def test_what_cannot_be_read_is_an_error_that_says_what_to_write(wrong: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        documents(wrong)
    assert words in str(caught.value)


def test_a_limit_is_named_once() -> None:
    with pytest.raises(ValueError, match="Task 'a' names limit 'x' twice"):
        documents("x", Limit("x", at_once=2))
