"""A run beside another one of its DAG."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import DagModel, DagVersion, SourceBlob, TaskInstance

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

ALL_WELL = dict.fromkeys(("extract", "clean", "check", "load"), "success")


@pytest.fixture
def sales() -> DagModel:
    dag = factory.make_dag("sales")
    factory.make_run(dag, "good", "success", ALL_WELL, NOW - timedelta(hours=3), 100)
    factory.make_run(dag, "worse", "failed", ALL_WELL | {"load": "failed"}, NOW - timedelta(hours=2), 100)
    factory.make_run(dag, "bad", "failed", ALL_WELL | {"check": "failed", "load": "upstream_failed"}, NOW, 200)
    return dag


def page(client: Client, run: str = "bad", query: str = "", status: int = 200) -> str:
    response = client.get(f"/dags/sales/runs/{run}/compare/{query}")
    assert response.status_code == status
    return response.content.decode()


def rows(html: str) -> dict[str, tuple[list[str], list[str]]]:
    """Task → (states here and there, durations here, there, and the difference)."""
    found = {}
    for task, rest in re.findall(r'<tr[^>]*><td>(?:<a|<span) class="id"[^>]*>(\w+)<(.*?)</tr>', html, re.S):
        found[task] = (re.findall(r'class="st s-(\w+)"', rest), re.findall(r'<td class="num">([^<]*)</td>', rest))
    return found


def test_the_last_success_before_it_is_what_a_run_is_compared_with(admin: Client, sales: DagModel) -> None:
    found = rows(page(admin))
    assert found["check"] == (["failed", "success"], ["1 m 40 s", "50 s", "+50 s"])
    assert found["load"] == (["upstream_failed", "success"], ["–", "50 s", "–"])
    assert set(found) == {"extract", "clean", "check", "load"}


def test_without_a_success_the_run_before_it_is_taken(admin: Client, sales: DagModel) -> None:
    sales.runs.filter(run_id="good").delete()
    assert rows(page(admin))["load"][0] == ["upstream_failed", "failed"]


def test_the_first_run_has_nothing_to_be_compared_with(admin: Client, sales: DagModel) -> None:
    assert "There is no run to compare with" in page(admin, "good")


def test_another_run_can_be_chosen(admin: Client, sales: DagModel) -> None:
    html = page(admin, query="?with=worse")
    assert rows(html)["load"][0] == ["upstream_failed", "failed"]
    chosen = re.search(r'<select id="with".*?</select>', html, re.S)
    assert chosen is not None
    assert re.findall(r'<option value="(\w+)"( selected)?>', chosen[0]) == [("worse", " selected"), ("good", "")]
    page(admin, query="?with=none", status=404)


def test_only_what_differs_can_be_shown(admin: Client, sales: DagModel) -> None:
    html = page(admin, query="?only=different")
    assert set(rows(html)) == {"check", "load"}
    assert "Different <b>2</b>" in html


def test_a_task_that_one_of_them_lacks_says_so(admin: Client, sales: DagModel) -> None:
    TaskInstance.objects.filter(dag_run__run_id="bad", task_id="clean").delete()
    TaskInstance.objects.filter(dag_run__run_id="good", task_id="check").delete()
    html = page(admin)
    assert "not in this run" in html
    assert "not in that run" in html


def test_mapped_instances_are_one_row_with_the_worst_state(admin: Client, sales: DagModel) -> None:
    run = sales.runs.get(run_id="bad")
    TaskInstance.objects.bulk_create(
        TaskInstance(
            dag_run=run, dag_id="sales", task_id="extract", map_index=index, state=state, try_number=1,
            start_date=NOW + timedelta(seconds=index), end_date=NOW + timedelta(seconds=300 * index),
        )
        for index, state in ((1, "success"), (2, "failed"))
    )  # fmt: skip
    html = page(admin)
    assert rows(html)["extract"] == (["failed", "success"], ["10 m 00 s", "50 s", "+9 m 10 s"])
    assert "×3" in html


def test_the_files_of_two_versions_are_set_against_each_other(admin: Client, sales: DagModel) -> None:
    SourceBlob.objects.create(sha256="a" * 64, content=b"retries = 1\nwith DAG():\n")
    SourceBlob.objects.create(sha256="b" * 64, content=b"retries = 2\nwith DAG():\n")
    old = sales.latest_version
    old.source_sha256 = "a" * 64
    old.save()
    new = DagVersion.objects.create(
        dag=sales, version_number=2, dag_hash="new", document=old.document, created_at=NOW, source_sha256="b" * 64
    )
    sales.runs.filter(run_id="bad").update(dag_version=new)
    html = page(admin)
    assert "What changed in the file from v1 to v2" in html
    assert re.findall(r'<span class="(ok|bad)">([^<]*)</span>\n', html) == [
        ("bad", "-retries = 1"),
        ("ok", "+retries = 2"),
    ]


def test_more_tasks_cost_no_more_statements(admin: Client, sales: DagModel) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as caught:
            page(admin)
        return len(caught)

    few = cost()
    run = sales.runs.get(run_id="bad")
    TaskInstance.objects.bulk_create(
        TaskInstance(dag_run=run, dag_id="sales", task_id=f"t{n}", state="success") for n in range(100)
    )
    # session, user and heartbeat; the run, its partner, the choices, the tasks of both
    assert (few, cost()) == (7, 7)
