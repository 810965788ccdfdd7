"""A year of days: what their tiles say, where they lead, and what the schedule plans."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.test import Client

from scheduler_app.ui.calendar import WEEKS, calendar, labels

from . import factory
from .factory import NOW

CALENDAR = "/dags/sales/calendar/"
HOURLY = {"kind": "cron_trigger", "expression": "0 * * * *", "timezone": "UTC"}


def page(client: Client, query: str = "") -> str:
    response = client.get(CALENDAR + query)
    assert response.status_code == 200
    return response.content.decode()


def titles(html: str) -> dict[str, str]:
    """Day → what its tile says."""
    return dict(re.findall(r"<title>\w{3} ([\d-]+): ([^<]*)</title>", html))


def test_the_picture_ends_four_weeks_ahead_and_begins_a_year_back() -> None:
    weeks = calendar(date(2030, 1, 31), date(2030, 1, 31))
    assert len(weeks) == WEEKS
    assert {len(week) for week in weeks} == {7}
    assert (weeks[0][0], weeks[-1][-1]) == (date(2029, 2, 26), date(2030, 3, 3))
    assert {week[0].weekday() for week in weeks} == {0}


def test_an_earlier_year_ends_with_the_week_that_was_asked_for() -> None:
    assert calendar(date(2030, 1, 31), date(2029, 2, 25))[-1][-1] == date(2029, 2, 25)


def test_each_month_is_named_where_it_begins() -> None:
    weeks = calendar(date(2030, 1, 31), date(2030, 1, 31))
    named = labels(weeks)
    assert [day.month for _column, day in named] == [*range(3, 13), 1, 2]
    assert all(day in weeks[column] for column, day in named)


@pytest.mark.django_db
def test_a_tile_tells_how_the_runs_of_its_day_ended_and_leads_to_them(admin: Client) -> None:
    dag = factory.make_dag("sales")
    for hour, state in ((1, "success"), (2, "success"), (3, "failed")):
        factory.make_run(dag, f"r{hour}", state, at=datetime(2030, 1, 10, hour, tzinfo=UTC))
    html = page(admin)
    assert titles(html)["2030-01-10"] == "Failed 1, Success 2"
    assert titles(html)["2030-01-11"] == "no run"
    assert 'href="/dags/sales/runs/?day=2030-01-10"' in html
    pieces = re.findall(r'height="([\d.]+)" class="did s-(\w+)"', html)
    assert pieces == [("4.3", "failed"), ("8.7", "success")]


@pytest.mark.django_db
def test_a_single_failure_among_thousands_can_be_seen(admin: Client) -> None:
    dag = factory.make_dag("sales")
    factory.make_run(dag, "bad", "failed", at=NOW)
    for number in range(30):
        factory.make_run(dag, f"r{number}", "success", at=NOW)
    assert re.findall(r'height="([\d.]+)" class="did s-(\w+)"', page(admin)) == [("3.0", "failed"), ("10.0", "success")]


@pytest.mark.django_db
def test_a_day_is_one_of_the_readers_zone(admin: Client) -> None:
    factory.make_run(factory.make_dag("sales"), "r1", "success", at=datetime(2030, 1, 10, 23, tzinfo=UTC))
    admin.cookies["scheduler_zone"] = "Asia/Tokyo"
    assert titles(page(admin))["2030-01-11"] == "Success 1"
    assert "r1" in admin.get("/dags/sales/runs/?day=2030-01-11").content.decode()
    assert "r1" not in admin.get("/dags/sales/runs/?day=2030-01-10").content.decode()


@pytest.mark.django_db
@pytest.mark.parametrize(("paused", "said"), [(False, "planned 24"), (True, "no run")])
def test_days_to_come_show_what_the_schedule_plans(admin: Client, paused: bool, said: str) -> None:
    factory.make_dag("sales", timetable=HOURLY, is_paused=paused, next_dagrun_run_after=NOW + timedelta(hours=1))
    assert titles(page(admin))["2030-02-02"] == said


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["?end=x", "?end=9999-12-31", "?end=0001-01-01", "?end=2031-01-01"])
def test_odd_days_are_no_error_and_lead_to_now(admin: Client, query: str) -> None:
    factory.make_dag("sales")
    assert "2030-01-31" in titles(page(admin, query))


@pytest.mark.django_db
def test_all_runs_of_a_day_are_what_its_list_does_a_deed_to(admin: Client) -> None:
    dag = factory.make_dag("sales")
    factory.make_run(dag, "old", "failed", at=NOW - timedelta(days=1))
    factory.make_run(dag, "new", "failed", at=NOW)
    listed = admin.get(f"/dags/sales/runs/?day={NOW:%Y-%m-%d}").content.decode()
    assert f'name="day" value="{NOW:%Y-%m-%d}"' in listed
    html = admin.get("/bulk/runs/", {"do": "clear", "all": "yes", "dag": "sales", "day": f"{NOW:%Y-%m-%d}"})
    assert re.findall(r'<a class="id" href="/dags/sales/runs/(\w+)/"', html.content.decode()) == ["new"]
