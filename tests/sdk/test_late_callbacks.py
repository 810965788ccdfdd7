"""What an author's code is told when a task misses its SLA or a run its deadline."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import pytest

from scheduler_app.sdk.dag import DAG
from scheduler_app.sdk.notifier import BaseNotifier
from scheduler_app.sdk.operators.empty import EmptyOperator
from scheduler_app.usercode import callbacks

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
RUN = {
    "dag_id": "d",
    "run_id": "r",
    "run_type": "scheduled",
    "state": "running",
    "logical_date": START.isoformat(),
    "data_interval_start": START.isoformat(),
    "data_interval_end": START.isoformat(),
    "run_after": START.isoformat(),
    "conf": {},
    "consumed_asset_events": [],
}
SLA = {
    "tasks": [{"task_id": "a", "due_at": "2026-01-01T00:10:00+00:00"}],
    "blocking": [{"task_id": "b", "map_index": -1, "state": "queued"}],
}
TOLD: list[Any] = []


def plain(to: str) -> None:
    TOLD.append(to)


async def slow(to: str, context: Any) -> None:
    TOLD.append((to, context["dag_run"].run_id, context["deadline"]))


class Teller(BaseNotifier):
    def __init__(self, to: str) -> None:
        super().__init__()
        self.to = to

    def notify(self, context: Any) -> None:
        TOLD.append((self.to, context["dag_run"].run_id))


def made(**options: Any) -> DAG:
    TOLD.clear()
    with DAG("d", start_date=START, schedule="@daily", **options) as dag:
        EmptyOperator(task_id="a")
    return dag


def deadline(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    path = f"{sys.modules[__name__].__name__}.{name}"
    late = {"id": 7, "name": None, "due_at": START.isoformat(), "callback": {"path": path, "kwargs": kwargs}}
    return callbacks.run(made(), "deadline", None, {"run": RUN, "late": late}, None)


def test_an_sla_miss_callback_takes_the_five_arguments_of_airflow_2() -> None:
    dag = made(sla_miss_callback=lambda *told: TOLD.append(told))
    assert callbacks.run(dag, "sla_miss", None, {"run": RUN, "late": SLA}, None)["state"] == "success"
    ((given, tasks, blocking, slas, waiting),) = TOLD
    assert given is dag
    assert (tasks, blocking) == ("a on 2026-01-01T00:00:00+00:00", "b on 2026-01-01T00:00:00+00:00")
    (miss,) = slas
    assert (miss.dag_id, miss.task_id, miss.execution_date) == ("d", "a", START)
    assert miss.timestamp == START + dt.timedelta(minutes=10)
    assert [(one.task_id, one.run_id, one.state) for one in waiting] == [("b", "r", "queued")]


def test_the_callback_of_a_deadline_gets_its_arguments() -> None:
    assert deadline("plain", {"to": "ann"})["state"] == "success"
    assert TOLD == ["ann"]


def test_an_asynchronous_one_is_waited_for_and_takes_the_context_if_it_asks_for_it() -> None:
    assert deadline("slow", {"to": "ann"})["state"] == "success"
    assert TOLD == [("ann", "r", {"id": 7, "deadline_time": START})]


def test_a_notifier_is_made_and_called() -> None:
    assert deadline("Teller", {"to": "ann"})["state"] == "success"
    assert TOLD == [("ann", "r")]


@pytest.mark.parametrize(("name", "kwargs"), [("plain", {}), ("slow", {"too": "ann"})])
def test_one_that_raises_is_a_failure_that_is_not_tried_again(name: str, kwargs: dict[str, Any]) -> None:
    outcome = deadline(name, kwargs)
    assert (outcome["state"], outcome["retry"], TOLD) == ("failed", False, [])


def test_a_path_that_leads_nowhere_says_so() -> None:
    with pytest.raises(AttributeError, match="gone"):
        deadline("gone", {})
