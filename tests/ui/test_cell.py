"""The panel beside the grid: what a selected cell tells, and to whom."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import Client

from scheduler_app.models import DagRun, TaskInstance

from . import factory

pytestmark = pytest.mark.django_db

PANEL = "/dags/sales/runs/r1/tasks/{}/panel/"


@pytest.fixture
def run() -> DagRun:
    factory.make_job()
    states = {"extract": "success", "clean": "failed", "check": "running"}
    return factory.make_run(factory.make_dag("sales"), "r1", "running", states)


def panel(client: Client, task_id: str, status: int = 200) -> str:
    response = client.get(PANEL.format(task_id))
    assert response.status_code == status
    return response.content.decode()


def test_a_failed_cell_shows_its_reason_the_end_of_its_log_and_what_can_be_done(
    admin: Client, run: DagRun, log_folder: Path
) -> None:
    instance = TaskInstance.objects.select_related("dag_run").get(task_id="clean")
    factory.make_log(log_folder, instance, factory.log_lines(40))
    html = panel(admin, "clean")
    assert "<html" not in html
    assert "KeyError: &#x27;fx&#x27;" in html
    assert html.count("<li id=") == 15
    assert "The task failed" in html
    assert 'href="/dags/sales/runs/r1/tasks/clean/">Open</a>' in html
    assert "/dags/sales/clear/?run=r1&amp;task=clean" in html


def test_a_waiting_cell_says_why(admin: Client, run: DagRun) -> None:
    assert "Why is it not running?" in panel(admin, "load")


def test_of_a_mapped_task_the_worst_instance_is_shown_with_the_count_of_all(admin: Client, run: DagRun) -> None:
    TaskInstance.objects.filter(task_id="extract").delete()
    TaskInstance.objects.bulk_create(
        [
            TaskInstance(dag_run=run, dag_id="sales", task_id="extract", map_index=index, state=state)
            for index, state in enumerate(["success", "success", "failed", "success"])
        ]
    )
    html = panel(admin, "extract")
    assert 'href="/dags/sales/runs/r1/tasks/extract/2/">Open</a>' in html
    assert re.findall(r'<span class="chip"><span class="st s-(\w+)">\w+</span> <b>(\d)</b>', html) == [
        ("success", "3"),
        ("failed", "1"),
    ]


def test_the_grid_shows_the_panel_that_its_address_names(admin: Client, run: DagRun) -> None:
    plain = admin.get("/dags/sales/grid/").content.decode()
    assert re.search(r'<aside id="cell"[^>]*></aside>', plain)
    named = admin.get("/dags/sales/grid/?cell=r1/clean").content.decode()
    assert 'href="/dags/sales/runs/r1/tasks/clean/">Open</a>' in named
    assert re.search(r'<aside id="cell"[^>]*></aside>', admin.get("/dags/sales/grid/?cell=r1/no").content.decode())


def test_a_viewer_sees_the_panel_without_deeds_and_a_stranger_does_not(
    as_role: Callable[[str], Client], run: DagRun
) -> None:
    assert "/clear/" not in panel(as_role("Viewer"), "clean")
    panel(as_role(""), "clean", 403)


def test_a_cell_that_does_not_exist_is_not_found(admin: Client, run: DagRun) -> None:
    panel(admin, "nothing", 404)
