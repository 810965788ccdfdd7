"""Totals and orders of lists that are too long to be counted or sorted: right where exact, safe where not."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app.engine import states
from scheduler_app.models import DagRun, TaskInstance
from scheduler_app.queries import merged, totals
from tests import rows
from tests.rows import T0
from tests.shapes import shape

ALL_TASKS = "dags/~/dagRuns/~/taskInstances"


@pytest.fixture
def many(db):
    """Two tasks of twelve runs in every state, some without a start, some mapped, some at the same instant."""
    dag = rows.store(shape("a; b", "many"))
    rows.trigger(dag, 12)
    made = list(TaskInstance.objects.order_by("pk"))
    TaskInstance.objects.all().delete()
    for place, row in enumerate(made):
        start = None if place % 5 == 0 else T0 + timedelta(seconds=place * 7 % 9)
        row.state = states.TASK_STATES[place % len(states.TASK_STATES)]
        row.start_date, row.end_date, row.map_index = start, start, place % 4 - 1
    TaskInstance.objects.bulk_create(made)
    return dag


def keys(http, query, key="task_instances"):
    """Every row that a client sees that asks for pages of five until it has seen as many as there are."""
    seen, offset = [], 0
    while True:
        answer = http.get(f"{ALL_TASKS}?limit=5&offset={offset}&{query}").json()
        seen += [row["id"] for row in answer[key]]
        offset += 5
        if offset >= answer["total_entries"]:
            return seen


@pytest.mark.parametrize("order", ["start_date", "-start_date", "end_date", "-end_date", "map_index", "-map_index"])
@pytest.mark.parametrize("filters", ["", "state=failed&state=none", "state=removed", "pool=nowhere"])
def test_an_order_that_is_merged_from_parts_is_the_order_of_the_whole(http, many, order, filters, monkeypatch):
    got = keys(http, f"order_by={order}&{filters}")
    monkeypatch.setattr(merged, "TASK_INSTANCES", {})
    assert got == keys(http, f"order_by={order}&{filters}")
    assert (
        len(got)
        == len(set(got))
        == {"": 24, "state=failed&state=none": 4, "state=removed": 1, "pool=nowhere": 0}[filters]
    )


@pytest.mark.parametrize("order", ["start_date", "-start_date", "-map_index"])
def test_BC_107_a_cursor_walks_the_merged_order_there_and_back(http, many, order):
    first = http.get(f"{ALL_TASKS}?limit=7&order_by={order}&cursor=").json()
    pages = [first]
    while (cursor := pages[-1]["next_cursor"]) is not None:
        pages.append(http.get(f"{ALL_TASKS}?limit=7&order_by={order}&cursor={cursor}").json())
    walked = [row["id"] for page in pages for row in page["task_instances"]]
    assert walked == keys(http, f"order_by={order}")
    back = http.get(f"{ALL_TASKS}?limit=7&order_by={order}&cursor={pages[1]['previous_cursor']}").json()
    assert back["task_instances"] == first["task_instances"]


@pytest.mark.parametrize("limit", [24, 100])
def test_a_total_is_exact_up_to_the_bound_and_says_so(http, many, limit, monkeypatch):
    monkeypatch.setattr(totals, "EXACT", limit)
    answer = http.get(f"{ALL_TASKS}?limit=5&order_by=-start_date").json()
    assert (answer["total_entries"], answer["total_entries_limit"]) == (24, None)


def test_a_client_that_pages_by_an_estimated_total_sees_every_row_and_comes_to_an_end(http, many, monkeypatch):
    whole = keys(http, "order_by=id")
    monkeypatch.setattr(totals, "EXACT", 6)
    for estimate in (0, 7, 1000):
        monkeypatch.setattr(totals, "_estimate", lambda rows, number=estimate: number)
        first = http.get(f"{ALL_TASKS}?limit=5&order_by=id").json()
        assert first["total_entries_limit"] == 6
        assert first["total_entries"] == max(estimate, 7)
        assert keys(http, "order_by=id") == whole
    assert http.get(f"{ALL_TASKS}?limit=5&offset=500&order_by=id").json()["total_entries"] == 500


def test_the_estimate_is_the_planners_and_reads_no_row(many, django_assert_num_queries):
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("ANALYZE scheduler_task_instance")
    with django_assert_num_queries(2):
        assert totals.total(TaskInstance.objects.all(), None, 10) == (24, False)
    with django_assert_num_queries(1):
        assert totals.total(DagRun.objects.all(), None, 12) == (12, True)


def test_every_task_instance_is_in_one_part(many):
    for parts in merged.TASK_INSTANCES.values():
        found = [pk for part in parts for pk in TaskInstance.objects.filter(part).values_list("pk", flat=True)]
        assert sorted(found) == sorted(TaskInstance.objects.values_list("pk", flat=True))
    found = [
        pk for part in merged.RUNS["start_date"] for pk in DagRun.objects.filter(part).values_list("pk", flat=True)
    ]
    assert len(found) == 12


def test_the_statistics_count_each_state_of_each_dag(http, many):
    other = rows.store(shape("a", "other"))
    for number, state in enumerate(["success", "success", "failed", "running", "queued"]):
        DagRun.objects.create(dag=other, run_id=f"r{number}", run_type="manual", run_after=T0, state=state)
    DagRun.objects.create(dag=other, run_id="b", run_type="backfill", run_after=T0, state="queued", backfill_id=1)
    rows.store(shape("a", "without"))
    said = {
        dag["dag_id"]: {item["state"]: item["count"] for item in dag["stats"]}
        for dag in http.get("dagStats").json()["dags"]
    }
    assert said == {
        "many": {"queued": 12, "running": 0, "success": 0, "failed": 0},
        "other": {"queued": 2, "running": 1, "success": 2, "failed": 1},
        "without": {"queued": 0, "running": 0, "success": 0, "failed": 0},
    }
    one = http.get("dagStats?dag_ids=other").json()
    assert (one["total_entries"], one["dags"][0]["dag_id"]) == (1, "other")
