"""Clear and mark: the preview is exact, and the deed does what it showed or nothing."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from scheduler_app.models import Audit, DagRun, TaskInstance

from . import factory

pytestmark = pytest.mark.django_db

STATES: dict[str, str | None] = {
    "extract": "success",
    "clean": "failed",
    "check": "success",
    "load": "upstream_failed",
}


@pytest.fixture
def run(db: None) -> DagRun:
    return factory.make_run(factory.make_dag("sales"), "r1", "failed", STATES)


def shown(html: str) -> list[str]:
    return re.findall(r'<span class="chip"><span class="st s-\w+">(\w+)</span>', html)


def expect(html: str) -> str:
    found = re.search(r'name="expect" value="([\d,]*)"', html)
    assert found is not None
    return found[1]


def states_of(run: DagRun) -> dict[str, str | None]:
    return dict(TaskInstance.objects.filter(dag_run=run).values_list("task_id", "state"))


def test_the_preview_follows_the_toggles(admin: Client, run: DagRun) -> None:
    def names(query: str) -> list[str]:
        return shown(admin.get(f"/dags/sales/clear/?run=r1&{query}").content.decode())

    assert names("task=clean") == ["clean"]
    assert names("task=clean&downstream=1") == ["clean", "load"]
    assert names("task=clean&upstream=1") == ["clean", "extract"]
    assert names("") == ["check", "clean", "extract", "load"]
    assert names("only_failed=1") == ["clean", "load"]


def test_the_preview_changes_nothing(admin: Client, run: DagRun) -> None:
    admin.get("/dags/sales/clear/?run=r1")
    assert states_of(run) == STATES
    assert not Audit.objects.exists()


def test_clearing_resets_what_the_preview_showed_and_queues_the_run(admin: Client, run: DagRun) -> None:
    html = admin.get("/dags/sales/clear/?run=r1&task=clean&downstream=1").content.decode()
    assert "Clear 2 tasks" in html
    data = {"run": "r1", "task": "clean", "downstream": "1", "expect": expect(html), "note": "feed is there"}
    response = admin.post("/dags/sales/clear/", data)
    assert response["Location"] == "/dags/sales/runs/r1/"
    assert states_of(run) == {**STATES, "clean": None, "load": None}
    run.refresh_from_db()
    assert run.state == "queued"
    assert TaskInstance.objects.get(task_id="clean").note == "feed is there"


def test_a_set_that_changed_meanwhile_opens_the_preview_again(admin: Client, run: DagRun) -> None:
    html = admin.get("/dags/sales/clear/?run=r1&task=clean&only_failed=1&downstream=1").content.decode()
    data = {"run": "r1", "task": "clean", "downstream": "1", "expect": expect(html).split(",")[0]}
    response = admin.post("/dags/sales/clear/", data)
    assert response.status_code == 409
    assert "changed since the preview" in response.content.decode()
    assert shown(response.content.decode()) == ["clean", "load"]
    assert states_of(run) == STATES


def test_a_whole_run_is_cleared(admin: Client, run: DagRun) -> None:
    html = admin.get("/dags/sales/clear/?run=r1").content.decode()
    admin.post("/dags/sales/clear/", {"run": "r1", "expect": expect(html)})
    assert set(states_of(run).values()) == {None}


def test_running_tasks_are_named_apart(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales"), "r2", "running", {"extract": "running"})
    assert "One is running and will be stopped." in admin.get("/dags/sales/clear/?run=r2").content.decode()


def test_a_task_is_marked_as_success_and_its_followers_go_on(admin: Client, run: DagRun) -> None:
    html = admin.get("/dags/sales/mark/?run=r1&task=clean&state=success").content.decode()
    assert shown(html) == ["clean"]
    data = {"run": "r1", "task": "clean", "state": "success", "expect": expect(html), "note": "repaired by hand"}
    admin.post("/dags/sales/mark/", data)
    assert states_of(run) == {**STATES, "clean": "success", "load": None}
    assert Audit.objects.filter(reason="repaired by hand").exists()


def test_marking_what_is_already_so_offers_nothing(admin: Client, run: DagRun) -> None:
    html = admin.get("/dags/sales/mark/?run=r1&task=extract&state=success").content.decode()
    assert "All of them are in that state already." in html
    assert 'name="expect"' not in html


def test_a_run_is_marked_as_failed(admin: Client) -> None:
    run = factory.make_run(factory.make_dag("sales"), "r2", "running", {"extract": "success"})
    html = admin.get("/dags/sales/mark/?run=r2&state=failed").content.decode()
    assert shown(html) == ["clean", "check", "load"]
    admin.post("/dags/sales/mark/", {"run": "r2", "state": "failed"})
    run.refresh_from_db()
    assert run.state == "failed"
    assert states_of(run) == {"extract": "success", "clean": "skipped", "check": "skipped", "load": "skipped"}


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/dags/sales/clear/", 400),
        ("/dags/sales/clear/?run=none", 404),
        ("/dags/sales/clear/?run=r1&task=none", 404),
        ("/dags/sales/clear/?run=r1&task=clean&map=x", 400),
        ("/dags/sales/mark/?run=r1&task=clean&state=running", 400),
        ("/dags/none/clear/?run=r1", 404),
    ],
)
def test_a_preview_of_nothing_says_so(admin: Client, run: DagRun, path: str, status: int) -> None:
    assert admin.get(path).status_code == status


@pytest.mark.parametrize("path", ["/dags/sales/clear/", "/dags/sales/mark/"])
def test_a_viewer_may_neither_clear_nor_mark(as_role: object, run: DagRun, path: str) -> None:
    client = as_role("Viewer")  # type: ignore[operator]
    data = {"run": "r1", "task": "clean", "state": "success", "expect": ""}
    assert client.get(path, data).status_code == 403
    assert client.post(path, data).status_code == 403
    assert states_of(run) == STATES
