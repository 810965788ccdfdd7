"""Task instances of all runs: which are listed, and what is done to the ticked ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.test import Client

from scheduler_app.models import TaskInstance

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

BULK = "/bulk/task-instances/"


@pytest.fixture(autouse=True)
def rows() -> None:
    broken = {"extract": "success", "clean": "failed", "check": "running", "load": "upstream_failed"}
    factory.make_run(factory.make_dag("sales"), "r1", "running", broken, NOW - timedelta(hours=2))
    factory.make_run(factory.make_dag("stock"), "r1", "queued", at=NOW - timedelta(hours=1))
    factory.make_run(factory.make_dag("old"), "r1", "failed", {"clean": "failed"}, NOW - timedelta(days=3))
    TaskInstance.objects.filter(task_id="load", state="upstream_failed").update(end_date=NOW - timedelta(hours=1))


def listed(client: Client, query: str = "") -> list[tuple[str, str]]:
    """(DAG, task), sorted."""
    response = client.get(f"/task-instances/{query}")
    assert response.status_code == 200
    found = re.findall(r'<a class="id" href="/dags/(\w+)/runs/r1/tasks/(\w+)/"', response.content.decode())
    return sorted(found)


def key(dag_id: str, task_id: str) -> int:
    return TaskInstance.objects.get(dag_id=dag_id, task_id=task_id).pk


def states(dag_id: str) -> dict[str, str | None]:
    return dict(TaskInstance.objects.filter(dag_id=dag_id).values_list("task_id", "state"))


def test_all_are_listed_and_filtered_by_dag_task_pool_and_state(admin: Client) -> None:
    assert len(listed(admin)) == 12
    assert {dag for dag, _task in listed(admin, "?q=sal")} == {"sales"}
    assert listed(admin, "?task=extr") == [("old", "extract"), ("sales", "extract"), ("stock", "extract")]
    assert listed(admin, "?state=running") == [("sales", "check")]
    assert len(listed(admin, "?state=none&q=stock")) == 4
    TaskInstance.objects.filter(dag_id="sales", task_id="check").update(pool="warehouse")
    assert listed(admin, "?pool=warehouse") == [("sales", "check")]


def test_ended_ones_are_looked_for_as_far_back_as_asked(admin: Client) -> None:
    assert listed(admin, "?state=failed") == [("sales", "clean")]
    assert listed(admin, "?state=failed&hours=168") == [("old", "clean"), ("sales", "clean")]


def test_a_filter_without_a_hit_says_so(admin: Client) -> None:
    assert "No task instance matches" in admin.get("/task-instances/?q=nothing").content.decode()


def test_the_deed_is_shown_before_it_is_done(admin: Client) -> None:
    html = admin.get(BULK, {"do": "success", "ti": [key("sales", "clean"), key("old", "clean")]}).content.decode()
    assert "Mark as success: 2 tasks" in html
    assert states("old")["clean"] == "failed"


def test_ticked_tasks_of_several_runs_are_marked(admin: Client) -> None:
    ids = f"{key('sales', 'check')},{key('old', 'clean')}"
    html = admin.post(BULK, {"do": "success", "ids": ids}, follow=True).content.decode()
    assert "Mark as success: done for 2 tasks." in html
    assert (states("sales")["check"], states("old")["clean"]) == ("success", "success")


def test_a_cleared_failure_takes_those_with_it_that_failed_for_it_and_nothing_else(admin: Client) -> None:
    admin.post(BULK, {"do": "clear", "ids": str(key("sales", "clean"))})
    assert states("sales") == {"extract": "success", "clean": None, "check": "running", "load": None}


def test_a_cleared_success_runs_again_alone(admin: Client) -> None:
    admin.post(BULK, {"do": "clear", "ids": str(key("sales", "extract"))})
    assert states("sales") == {"extract": None, "clean": "failed", "check": "running", "load": "upstream_failed"}


def test_what_is_gone_is_left_alone_and_told(admin: Client) -> None:
    html = admin.post(BULK, {"do": "clear", "ids": "987654"}, follow=True).content.decode()
    assert "1 was left alone." in html


@pytest.mark.parametrize("asked", [{"do": "clear"}, {"do": "x", "ti": "1"}])
def test_a_broken_address_is_a_bad_request(admin: Client, asked: dict[str, str]) -> None:
    assert admin.get(BULK, asked).status_code == 400


def test_a_viewer_sees_the_list_and_does_nothing(as_role: Callable[[str], Client]) -> None:
    client = as_role("Viewer")
    assert len(listed(client)) == 12
    assert BULK not in client.get("/task-instances/").content.decode()
    assert client.post(BULK, {"do": "clear", "ids": str(key("sales", "clean"))}).status_code == 403
    assert states("sales")["clean"] == "failed"
