"""The page of failures: which errors count as one, what a group tells, and that all of it is cleared at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import DagRun, TaskInstance
from scheduler_app.queries.page_failures import key_of, signature

from . import factory
from .factory import NOW


@pytest.mark.parametrize(
    ("reason", "masked"),
    [
        ("KeyError: 'fx'", "KeyError: 'fx'"),
        ("row 4411 has 12 columns", "row … has … columns"),
        ("took 31.5 s, not 1,000", "took … s, not …"),
        ("at 2030-01-31T12:00:00+00:00 gone", "at … gone"),
        ("<Lock at 0x7f3a9c>", "<Lock at …>"),
        ("job 1b4e28ba-2fa1-11d2-883f-0016d3cca427 lost", "job … lost"),
        ("blob deadbeef01 lost", "blob … lost"),
        ("\n  first line\nsecond", "first line"),
        ("defaced", "defaced"),
        ("jinja2.exceptions.UndefinedError: 'x7' is undefined", "jinja2.exceptions.UndefinedError: 'x…' is undefined"),
        (None, ""),
    ],
)
def test_what_differs_from_failure_to_failure_is_masked(reason: str | None, masked: str) -> None:
    assert signature(reason) == masked


@pytest.fixture
def broken(db: None) -> list[DagRun]:
    """Three runs with failures: three alike, of which one will be retried; one of another kind; an old one."""
    runs = []
    for name in ("sales", "stock"):
        states = {"extract": "failed", "clean": "failed" if name == "sales" else "up_for_retry"}
        states |= {"load": "upstream_failed"} if name == "stock" else {}
        runs.append(factory.make_run(factory.make_dag(name), "r1", "failed", states, NOW - timedelta(minutes=10)))
    TaskInstance.objects.filter(task_id="extract").update(reason="TimeoutError: no answer after 31 s")
    TaskInstance.objects.filter(dag_id="stock", task_id="clean").update(reason="TimeoutError: no answer after 7 s")
    old = factory.make_run(factory.make_dag("old"), "r1", "failed", {"load": "failed"}, NOW - timedelta(hours=30))
    return [*runs, old]


ALIKE = key_of("TimeoutError: no answer after … s")


def rows(client: Client, query: str = "") -> list[tuple[str, str]]:
    """(signature, number of tasks) of each group."""
    html = client.get(f"/failures/{query}").content.decode()
    return re.findall(r'<a class="id" href="/failures/\w+/\?hours=\d+">([^<]*)</a>.*?s-failed">(\d+)<', html)


def test_failures_are_grouped_and_the_largest_group_comes_first(admin: Client, broken: list[DagRun]) -> None:
    assert rows(admin) == [("TimeoutError: no answer after … s", "3"), ("KeyError: &#x27;fx&#x27;", "1")]
    assert rows(admin, "?hours=168")[1] == ("KeyError: &#x27;fx&#x27;", "2")
    assert rows(admin, "?hours=no") == rows(admin)
    assert "1 will be retried" in admin.get("/failures/").content.decode()


def test_without_failures_the_page_says_so(admin: Client) -> None:
    assert "Nothing failed" in admin.get("/failures/").content.decode()


def test_a_group_lists_its_tasks_and_what_would_be_cleared(admin: Client, broken: list[DagRun]) -> None:
    html = admin.get(f"/failures/{ALIKE}/").content.decode()
    assert sorted(re.findall(r'href="(/dags/\w+/runs/r1/tasks/\w+/)"', html)) == [
        "/dags/sales/runs/r1/tasks/extract/",
        "/dags/stock/runs/r1/tasks/clean/",
        "/dags/stock/runs/r1/tasks/extract/",
    ]
    assert "Clear 2 tasks" in html
    assert admin.get("/failures/nothing/").status_code == 404


def ids(client: Client) -> str:
    found = re.search(r'name="ids" value="([\d,]+)"', client.get(f"/failures/{ALIKE}/").content.decode())
    assert found is not None
    return found[1]


def test_all_of_a_group_is_cleared_with_what_failed_after_it_and_nothing_else(
    admin: Client, broken: list[DagRun]
) -> None:
    response = admin.post(f"/failures/{ALIKE}/clear/", {"ids": ids(admin), "hours": "24"}, follow=True)
    # the two of the group, clean of sales and load of stock, which come after them
    assert "4 tasks were cleared." in response.content.decode()
    states = {f"{row.dag_id}.{row.task_id}": row.state for row in TaskInstance.objects.exclude(state=None)}
    assert states == {"stock.clean": "up_for_retry", "old.load": "failed"}


def test_what_changed_since_the_page_was_shown_is_left_alone(admin: Client, broken: list[DagRun]) -> None:
    shown = ids(admin)
    TaskInstance.objects.filter(dag_id="sales", task_id="extract").delete()
    response = admin.post(f"/failures/{ALIKE}/clear/", {"ids": shown}, follow=True)
    html = response.content.decode()
    assert "2 tasks were cleared." in html
    assert TaskInstance.objects.get(dag_id="sales", task_id="clean").state == "failed"
    assert "1 was left alone: it is not failed any more." in html


def test_a_viewer_sees_failures_but_clears_none(as_role: Callable[[str], Client], broken: list[DagRun]) -> None:
    client = as_role("Viewer")
    assert len(rows(client)) == 2
    assert "/clear/" not in client.get(f"/failures/{ALIKE}/").content.decode()
    pk = TaskInstance.objects.get(dag_id="sales", task_id="extract").pk
    assert client.post(f"/failures/{ALIKE}/clear/", {"ids": str(pk)}).status_code == 403
    assert TaskInstance.objects.get(pk=pk).state == "failed"
    assert as_role("").get("/failures/").status_code == 403


def test_the_page_asks_as_often_of_many_failures_as_of_few(admin: Client, broken: list[DagRun]) -> None:
    def count() -> int:
        with CaptureQueriesContext(connection) as queries:
            admin.get("/failures/")
        return len(queries)

    few = count()
    for number in range(20):
        factory.make_run(factory.make_dag(f"d{number}"), "r1", "failed", {"load": "failed"}, NOW - timedelta(hours=1))
    # session, user and heartbeat; failed and up for retry
    assert few == count() == 5
