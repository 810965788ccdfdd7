"""The Gantt chart: where moments lie on its line, which tasks the run's length comes from, what a reader sees."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from scheduler_app.models import DagRun, TaskInstance, TaskInstanceHistory
from scheduler_app.ui.time_axis import Axis, Fold

from . import factory
from .factory import NOW


def at(second: float) -> datetime:
    return NOW + timedelta(seconds=second)


def test_moments_lie_to_scale_from_the_first_to_the_last() -> None:
    axis = Axis([(at(0), at(40)), (at(40), at(100))])
    assert [axis.at(at(second)) for second in (-5, 0, 25, 100, 200)] == [0.0, 0.0, 25.0, 100.0, 100.0]
    assert axis.folds == []


def test_a_long_idle_gap_is_folded_and_a_short_one_is_not() -> None:
    axis = Axis([(at(0), at(40)), (at(50), at(55)), (at(1055), at(1100))])
    assert axis.folds == [Fold(pytest.approx(54.75), 1000.0)]
    assert axis.at(at(55)) == pytest.approx(52.25)
    assert axis.at(at(1055)) - axis.at(at(55)) == pytest.approx(5.0)
    assert axis.at(at(40)) - axis.at(at(0)) == pytest.approx(40 * 95 / 100)


def test_one_moment_alone_is_a_line_too() -> None:
    axis = Axis([(at(0), at(0))])
    assert axis.at(at(0)) == 0.0


def test_a_line_without_an_interval_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least one interval"):
        Axis([])


def test_marks_are_round_moments_with_room_between_them() -> None:
    axis = Axis([(at(1), at(61))])
    assert axis.step() == 10
    places = [place for place, _moment in axis.marks()]
    assert [moment.second for _place, moment in axis.marks()] == [10, 20, 30, 40, 50]
    assert min(b - a for a, b in pairwise(places)) >= 7


def test_marks_keep_clear_of_folds() -> None:
    axis = Axis([(at(0), at(60)), (at(4000), at(4060))])
    (fold,) = axis.folds
    assert all(abs(place - fold.at) >= 7 for place, _moment in axis.marks())


# ── The page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def set_times(run: DagRun, task_id: str, due: float, start: float | None, end: float | None, **more: object) -> None:
    row = TaskInstance.objects.filter(dag_run=run, task_id=task_id)
    row.update(
        scheduled_when=at(due),
        queued_when=at(due),
        start_date=None if start is None else at(start),
        end_date=None if end is None else at(end),
        **more,
    )


@pytest.fixture
def run(db: None) -> DagRun:
    states = {"extract": "success", "clean": "success", "check": "success", "load": "failed"}
    made = factory.make_run(factory.make_dag("sales"), "r1", "failed", states, at=at(0))
    set_times(made, "extract", 0, 10, 20)
    set_times(made, "clean", 20, 20, 80)
    set_times(made, "check", 20, 30, 40)
    set_times(made, "load", 80, 90, 100)
    return made


GANTT = "/dags/sales/runs/r1/gantt/"


def page(client: Client) -> str:
    response = client.get(GANTT)
    assert response.status_code == 200
    return response.content.decode()


def bars(html: str) -> dict[str, list[tuple[str, str, str]]]:
    """Task → (x, width, waiting or the state) of each piece."""
    found = {}
    for task, rest in re.findall(r'<th scope="row"><a[^>]*>([^<]+)</a>(.*?)</tr>', html, re.S):
        pieces = re.findall(r'<rect x="([\d.]+)%" width="([\d.]+)%"[^>]*class="(?:did s-)?([\w]+)"', rest)
        found[task] = pieces
    return found


def test_rows_come_by_their_start_with_waiting_and_running_apart(admin: Client, run: DagRun) -> None:
    assert bars(page(admin)) == {
        "extract": [("0.00", "10.00", "wait"), ("10.00", "10.00", "success")],
        "clean": [("20.00", "60.00", "success")],
        "check": [("20.00", "10.00", "wait"), ("30.00", "10.00", "success")],
        "load": [("80.00", "10.00", "wait"), ("90.00", "10.00", "failed")],
    }


def test_each_try_is_a_piece_of_its_own(admin: Client, run: DagRun) -> None:
    instance = TaskInstance.objects.get(task_id="load")
    TaskInstanceHistory.objects.create(
        task_instance=instance, dag_run=run, dag_id="sales", task_id="load", state="failed", try_number=1,
        scheduled_when=at(80), start_date=at(82), end_date=at(84),
    )  # fmt: skip
    set_times(run, "load", 88, 90, 100, try_number=2)
    html = page(admin)
    assert [state for _x, _width, state in bars(html)["load"]] == ["wait", "failed", "wait", "failed"]
    assert 'aria-label="waited 2.0 s; try 1: failed, 2.0 s; waited 2.0 s; try 2: failed, 10 s"' in html


def test_the_critical_path_is_told_and_drawn(admin: Client, run: DagRun) -> None:
    html = page(admin)
    assert re.findall(r'<tr class="critical"><th scope="row"><a[^>]*>(\w+)<', html) == ["extract", "clean", "load"]
    assert "1 m 30 s, of it 10 s between tasks" in html


def test_what_runs_or_waits_now_reaches_to_now(admin: Client, db: None) -> None:
    made = factory.make_run(factory.make_dag("sales"), "r1", "running", {"extract": "running", "clean": "scheduled"})
    set_times(made, "extract", -100, -50, None)
    set_times(made, "clean", -40, None, None)
    TaskInstance.objects.filter(task_id__in=["check", "load"]).update(scheduled_when=None, queued_when=None)
    html = page(admin)
    assert bars(html) == {
        "extract": [("0.00", "50.00", "wait"), ("50.00", "50.00", "running")],
        "clean": [("60.00", "40.00", "wait")],
    }
    assert "2 more tasks are not shown" in html


def test_a_run_that_has_not_begun_says_so(admin: Client, db: None) -> None:
    factory.make_run(factory.make_dag("sales"), "r1", "queued")
    TaskInstance.objects.update(scheduled_when=None, queued_when=None)
    assert "Nothing has begun" in page(admin)


def test_the_chart_asks_as_often_of_many_tasks_as_of_few(admin: Client, run: DagRun) -> None:
    with CaptureQueriesContext(connection) as few:
        page(admin)
    clones = [
        TaskInstance(
            dag_run=run, dag_id="sales", task_id="load", map_index=index, state="success", start_date=at(90),
            end_date=at(100), scheduled_when=at(80), try_number=1,
        )
        for index in range(100)
    ]  # fmt: skip
    TaskInstance.objects.bulk_create(clones)
    with CaptureQueriesContext(connection) as many:
        page(admin)
    # session, user and heartbeat; the run, its pulse, three for the rows; the graph is cached
    assert (len(few), len(many)) == (9, 8)
