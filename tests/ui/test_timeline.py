"""Some hours of all DAGs on one line of time."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.queries.page_timeline import Span
from scheduler_app.ui.time_axis import Axis
from scheduler_app.ui.timeline import busy

from . import factory
from .factory import NOW

HOURLY = {"kind": "cron_trigger", "expression": "0 * * * *", "timezone": "UTC"}
AXIS = Axis([(NOW, NOW + timedelta(seconds=100))])


def page(client: Client, query: str = "") -> str:
    response = client.get(f"/timeline/{query}")
    assert response.status_code == 200
    return response.content.decode()


def bars(html: str) -> dict[str, list[tuple[str, str, str]]]:
    """DAG → (x, width, waiting or the state) of each bar; the lines that stand for short ones are left out."""
    found = {}
    for dag, rest in re.findall(r'<th scope="row"><a[^>]*>([^<]+)</a></th>(.*?)</tr>', html, re.S):
        found[dag] = re.findall(r'<rect x="([\d.]+)%" width="([\d.]+)%"[^>]*class="(?:did s-)?([\w]+)"', rest)
    return found


def span(begun: float, end: float | None, state: str = "success") -> Span:
    ended = None if end is None else NOW + timedelta(seconds=end)
    return Span("sales", "r", state, NOW + timedelta(seconds=begun), ended)


# ── Runs at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_runs_at_once_are_steps_up_and_down() -> None:
    found = busy(AXIS, [span(10, 30), span(20, 30)], NOW)
    assert found is not None
    assert found.most == 2
    assert found.path == "M0 30H10.00V16.0H20.00V2.0H30.00V30.0H30.00V30z"


def test_a_run_that_goes_on_counts_until_now() -> None:
    found = busy(AXIS, [span(10, None, "running")], NOW + timedelta(seconds=50))
    assert found is not None
    assert "H50.00V30.0" in found.path


def test_what_only_waits_keeps_nothing_busy() -> None:
    assert busy(AXIS, [span(10, None, "queued")], NOW + timedelta(seconds=50)) is None


# ── The page ─────────────────────────────────────────────────────────────────────────────────────────────────────────

pytestmark = pytest.mark.django_db


def test_a_run_is_a_bar_from_its_start_to_its_end(admin: Client) -> None:
    dag = factory.make_dag("sales")
    # six hours: 4.5 before now, 1.5 after it
    factory.make_run(dag, "r1", "failed", at=NOW - timedelta(hours=3), seconds=3600)
    factory.make_run(dag, "r2", "running", at=NOW - timedelta(hours=1.5))
    html = page(admin)
    assert bars(html) == {"sales": [("25.00", "16.67", "failed"), ("50.00", "25.00", "running")]}
    assert 'href="/dags/sales/runs/r1/"' in html
    assert 'x1="75.00%"' in html  # now


def test_what_ended_before_or_begins_after_is_left_out(admin: Client) -> None:
    dag = factory.make_dag("sales")
    factory.make_run(dag, "r1", "success", at=NOW - timedelta(hours=9), seconds=60)
    assert "Nothing ran, and nothing is planned" in page(admin)
    factory.make_run(dag, "r2", "success", at=NOW - timedelta(hours=9), seconds=9 * 3600)
    assert [width for _x, width, _state in bars(page(admin))["sales"]] == ["75.00"]


def test_planned_runs_are_as_long_as_they_usually_take(admin: Client) -> None:
    dag = factory.make_dag("sales", timetable=HOURLY, next_dagrun_run_after=NOW + timedelta(hours=1))
    factory.make_run(dag, "r1", "success", at=NOW - timedelta(days=3), seconds=1800)
    html = page(admin, "?hours=6")
    assert bars(html) == {"sales": [("75.00", "8.33", "wait"), ("91.67", "8.33", "wait")]}  # the first is due now
    assert "planned for 01-31 13:00, usually 30 m 00 s" in html


def test_a_paused_dag_plans_nothing(admin: Client) -> None:
    due = NOW + timedelta(hours=1)
    factory.make_dag("sales", timetable=HOURLY, next_dagrun_run_after=due, is_paused=True)
    assert bars(page(admin)) == {}


def test_dags_are_filtered_and_grouped(admin: Client) -> None:
    for name, tags in (("sales", ["eu"]), ("stock", ["us"]), ("churn", [])):
        factory.make_run(factory.make_dag(name, tags=tags), "r1", "success", at=NOW - timedelta(hours=1))
    assert list(bars(page(admin))) == ["churn", "sales", "stock"]
    assert list(bars(page(admin, "?q=tag:us"))) == ["stock"]
    html = page(admin, "?group=tag")
    assert list(bars(html)) == ["sales", "stock", "churn"]
    assert re.findall(r'<th scope="rowgroup" colspan="2">([^<]+)<', html) == ["eu", "us", "none"]


def test_another_time_is_reached_by_links(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales"), "r1", "success", at=NOW - timedelta(hours=7), seconds=3600)
    earlier = re.search(r'rel="prev" href="([^"]+)"', page(admin))
    assert earlier is not None
    assert "sales" in bars(page(admin, earlier[1].replace("&amp;", "&")))


@pytest.mark.parametrize(
    "query", ["?until=x", "?until=9999-12-31T23:59", "?until=0001-01-01", "?hours=7&group=x&page=99&q=%22"]
)
def test_odd_parameters_are_no_error(admin: Client, query: str) -> None:
    factory.make_dag("sales")
    page(admin, query)


def test_more_dags_and_runs_cost_no_more_statements(admin: Client) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as caught:
            page(admin, "?group=tag")
        return len(caught)

    factory.make_run(factory.make_dag("a", timetable=HOURLY, next_dagrun_run_after=NOW), "r1", at=NOW)
    few = cost()
    for number in range(20):
        dag = factory.make_dag(f"dag_{number}", timetable=HOURLY, next_dagrun_run_after=NOW, tags=["x"])
        factory.make_run(dag, "r1", "success", at=NOW - timedelta(hours=1))
    # session, user and heartbeat; the runs, the planned DAGs, their usual times, the tags
    assert (few, cost()) == (7, 7)


def test_only_the_dags_that_one_may_see_are_drawn(as_role: Callable[[str], Client]) -> None:
    assert as_role("").get("/timeline/").status_code == 403
