"""The search page: what a few letters find, in which order, and what may be done from there."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import DagModel
from scheduler_app.ui import search

from . import factory
from .factory import NOW

pytestmark = pytest.mark.django_db

ROW = re.compile(r'<li><(?:a href|button type="submit" form="deeds" formaction)="([^"]+)".*?<span class="tag">(\w+)<')


def hits(client: Client, text: str) -> list[tuple[str, str]]:
    """(kind, address) of each row."""
    html = client.get("/search/", {"q": text}).content.decode()
    return [(kind, url.replace("&amp;", "&")) for url, kind in ROW.findall(html)]


@pytest.fixture
def sales() -> None:
    factory.make_run(factory.make_dag("daily_sales"), "r1", "success", at=NOW - timedelta(hours=1))
    factory.make_dag("sales")
    factory.make_dag("churn", is_paused=True)


def test_a_dag_is_found_by_some_of_its_letters_the_best_first(admin: Client, sales: None) -> None:
    assert [url for kind, url in hits(admin, "sales") if kind == "DAG"] == ["/dags/sales/", "/dags/daily_sales/"]
    assert [url for kind, url in hits(admin, "dysl") if kind == "DAG"] == ["/dags/daily_sales/"]
    assert [url for kind, url in hits(admin, "100%") if kind == "DAG"] == []
    assert [url for kind, url in hits(admin, "daily_sales") if kind == "DAG"] == ["/dags/daily_sales/"]


def test_a_task_leads_to_its_newest_run_or_to_the_graph(admin: Client, sales: None) -> None:
    assert [url for kind, url in hits(admin, "extract") if kind == "task"] == [
        "/dags/churn/graph/",
        "/dags/daily_sales/runs/r1/tasks/extract/",
        "/dags/sales/graph/",
    ]


def test_a_run_is_found_by_words_of_its_dag_and_its_id(admin: Client, sales: None) -> None:
    assert ("run", "/dags/daily_sales/runs/r1/") in hits(admin, "daily r1")
    assert ("run", "/dags/daily_sales/runs/r1/") not in hits(admin, "churn r1")


def test_actions_follow_what_a_line_begins_with(admin: Client, sales: None) -> None:
    assert hits(admin, "pause sales") == [("do", "/dags/sales/pause/"), ("do", "/dags/daily_sales/pause/")]
    assert hits(admin, "resume churn") == [("do", "/dags/churn/pause/")]
    assert hits(admin, "resume sales") == []
    assert hits(admin, "clear sales") == [("do", "/dags/daily_sales/clear/?run=r1")]
    assert hits(admin, "trigger churn") == [("do", "/dags/churn/trigger/")]


def test_pages_are_found_and_no_more_than_twenty_rows_shown(admin: Client) -> None:
    assert ("page", "/pools/") in hits(admin, "pool")
    for number in range(30):
        factory.make_run(factory.make_dag(f"a_{number}"), "a")
    assert len(hits(admin, "a")) == 20


def test_without_letters_the_newest_runs_and_the_pages_are_offered(admin: Client, sales: None) -> None:
    found = hits(admin, "")
    assert found[0] == ("run", "/dags/daily_sales/runs/r1/")
    assert ("page", "/dags/") in found


def test_what_is_not_there_says_where_to_look(admin: Client, sales: None) -> None:
    assert "Nothing fits" in admin.get("/search/?q=qqqqzz").content.decode()


def test_a_viewer_finds_but_is_offered_no_action(as_role: Callable[[str], Client], sales: None) -> None:
    client = as_role("Viewer")
    kinds = {kind for kind, _url in hits(client, "sales")}
    assert "DAG" in kinds
    assert "do" not in kinds
    assert hits(client, "pause sales") == []
    assert hits(as_role(""), "sales") == []


def test_dags_that_a_rule_hides_are_not_found(
    as_role: Callable[[str], Client], sales: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search.access, "dags", lambda actor: DagModel.objects.filter(pk="churn"))
    client = as_role("Viewer")
    assert [url for kind, url in hits(client, "s") if kind in ("DAG", "task")] == []
    assert [url for kind, url in hits(client, "chu") if kind == "DAG"] == ["/dags/churn/"]


def test_a_search_takes_two_queries_however_much_there_is(admin: Client) -> None:
    for number in range(20):
        factory.make_run(factory.make_dag(f"dag_{number}"), "r1")
    with CaptureQueriesContext(connection) as queries:
        admin.get("/search/?q=dag")
    # two for session and user, one for the scheduler's heartbeat
    assert len(queries) == 3 + 2
