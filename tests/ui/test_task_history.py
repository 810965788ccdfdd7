"""One task over the runs of its DAG."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import DagModel, TaskInstance, TaskInstanceHistory

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def sales() -> DagModel:
    dag = factory.make_dag("sales")
    for back, (state, seconds) in enumerate((("success", 20), ("success", 40), ("failed", 60)), 1):
        factory.make_run(dag, f"r{back}", state, {"check": state}, NOW - timedelta(hours=back), seconds)
    return dag


def page(client: Client, task: str = "check", query: str = "", status: int = 200) -> str:
    response = client.get(f"/dags/sales/tasks/{task}/{query}")
    assert response.status_code == status
    return response.content.decode()


def facts(html: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]*)</dd>", html))


def test_its_runs_are_bars_the_oldest_first_each_leading_to_the_task(admin: Client, sales: DagModel) -> None:
    html = page(admin)
    found = re.findall(r'<a href="/dags/sales/runs/(\w+)/tasks/check/"><title>([^<]+)</title>', html)
    assert found == [
        ("r3", "Failed, 01-31 09:00, 30 s"),
        ("r2", "Success, 01-31 10:00, 20 s"),
        ("r1", "Success, 01-31 11:00, 10 s"),
    ]


def test_its_habits_are_counted(admin: Client, sales: DagModel) -> None:
    TaskInstance.objects.filter(dag_run__run_id="r1", task_id="check").update(try_number=2)
    found = facts(page(admin))
    assert {name: found[name] for name in ("Ended", "Succeeded", "Tried again", "Usual duration")} == {
        "Ended": "3", "Succeeded": "67 %", "Tried again": "33 %", "Usual duration": "15 s",
    }  # fmt: skip


def test_its_last_failures_are_named_also_those_of_earlier_tries(admin: Client, sales: DagModel) -> None:
    again = TaskInstance.objects.get(dag_run__run_id="r1", task_id="check")
    TaskInstanceHistory.objects.create(
        task_instance=again, dag_run=again.dag_run, dag_id="sales", task_id="check", state="failed", try_number=1,
        start_date=NOW - timedelta(hours=1), end_date=NOW - timedelta(minutes=50), reason="exit code 3",
    )  # fmt: skip
    html = page(admin)
    assert re.findall(r'href="/dags/sales/runs/(\w+)/tasks/check/\?try=(\d)"', html) == [("r1", "1"), ("r3", "1")]
    assert "exit code 3" in html
    assert "KeyError: &#x27;fx&#x27;" in html


def test_a_try_that_waits_for_the_next_one_is_named_once(admin: Client, sales: DagModel) -> None:
    row = TaskInstance.objects.get(dag_run__run_id="r3", task_id="check")
    TaskInstanceHistory.objects.create(
        task_instance=row, dag_run=row.dag_run, dag_id="sales", task_id="check", state="failed", try_number=1,
        end_date=row.end_date, reason="the same",
    )  # fmt: skip
    assert len(re.findall(r"\?try=1", page(admin))) == 1


def test_a_task_that_never_was_is_not_found_and_one_that_is_gone_is_shown(admin: Client, sales: DagModel) -> None:
    page(admin, "nothing", status=404)
    TaskInstance.objects.filter(dag_run__run_id="r1", task_id="check").update(task_id="old_check")
    assert "Its DAG has it no more." in page(admin, "old_check")


def test_it_never_ran_is_no_error(admin: Client) -> None:
    factory.make_dag("sales")
    assert "None of these runs has this task yet." in page(admin)


def test_more_runs_cost_no_more_statements(admin: Client, sales: DagModel) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as caught:
            page(admin, query="?runs=100")
        return len(caught)

    few = cost()
    for number in range(10, 40):
        factory.make_run(sales, f"r{number}", "success", {"check": "success"}, NOW - timedelta(hours=number))
    # session, user and heartbeat; the DAG, the runs, the failures of the live rows and of the history
    assert (few, cost()) == (7, 7)
