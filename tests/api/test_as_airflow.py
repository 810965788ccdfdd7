"""Answers to requests that Airflow takes or refuses in a way of its own."""

from __future__ import annotations

import pytest

from scheduler_app.models import TaskInstance
from tests import rows
from tests.shapes import shape

CLEAR = "dags/etl/clearTaskInstances"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"only_running": True}, 200),  # only_failed is true as well, but nobody said so
        ({"only_running": True, "only_failed": True}, 422),
        ({"task_ids": []}, 422),
        ({"include_future": True, "end_date": "1999-01-01T00:00:00Z"}, 200),
    ],
)
def test_what_a_clear_may_ask_for(http, run, body, status):
    assert http.post(CLEAR, {"dry_run": True, **body}).status_code == status


def test_past_and_future_without_a_run_open_the_range_of_dates(http, run):
    def named(**body) -> int:
        return http.post(CLEAR, {"dry_run": True, "only_failed": False, **body}).json()["total_entries"]

    every = TaskInstance.objects.count()
    assert every > 0
    assert named(end_date="1999-01-01T00:00:00Z") == 0
    assert named(end_date="1999-01-01T00:00:00Z", include_future=True) == every
    assert named(start_date="2999-01-01T00:00:00Z") == 0
    assert named(start_date="2999-01-01T00:00:00Z", include_past=True) == every


def test_an_answer_about_task_instances_has_the_form_of_a_page(http, run):
    answer = http.post(CLEAR, {"dry_run": True}).json()
    assert answer.keys() == {
        "task_instances",
        "total_entries",
        "total_entries_limit",
        "next_cursor",
        "previous_cursor",
    }


def test_a_run_of_any_dag_is_asked_for_with_its_dag(http, run):
    assert http.get(f"dags/~/dagRuns/{run.run_id}/taskInstances").status_code == 400
    assert http.get("dags/~/dagRuns/~/taskInstances").status_code == 200


def test_a_dag_without_partitions_takes_no_partition_key(http, etl):
    refused = http.post("dags/etl/dagRuns", {"logical_date": None, "partition_key": "p"})
    assert (refused.status_code, refused.json()["detail"]) == (
        400,
        "Dag 'etl' is not a partitioned Dag and does not accept a partition_key.",
    )


def test_a_dag_without_a_schedule_has_no_summary_of_one(http, etl):
    etl.timetable = {"kind": "null"}
    etl.timetable_summary = "None"
    etl.save()
    assert http.get("dags/etl").json()["timetable_summary"] is None


def test_a_task_shows_the_params_that_a_run_gives_it_and_whose_they_are(http, db):
    of_task = {"m": {"value": 2, "schema": {}, "description": "own"}}
    rows.store(shape("a", "both", tasks={"a": {"params": of_task}}, params={"n": {"value": 1, "schema": {}}}))
    assert http.get("dags/both/tasks/a").json()["params"] == {
        "n": {"value": 1, "schema": {}, "description": None, "source": "dag"},
        "m": {"value": 2, "schema": {}, "description": "own", "source": "task"},
    }
