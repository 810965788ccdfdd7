"""Backfills through the official client: asked for, shown before, paused, cancelled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import airflow_client.client as airflow
import pytest
from airflow_client.client.api.backfill_api import BackfillApi
from airflow_client.client.models.backfill_post_body import BackfillPostBody

from scheduler_app.models import Audit, Backfill, BackfillSlot
from tests import rows
from tests.shapes import shape

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def api(client) -> BackfillApi:
    dag = shape("a", "daily", timetable={"kind": "cron_trigger", "expression": "0 0 * * *"})
    rows.store(dag, dag_display_name="Every day")
    return BackfillApi(client)


def body(**fields) -> BackfillPostBody:
    return BackfillPostBody(**{"dag_id": "daily", "from_date": START, "to_date": START + timedelta(days=2), **fields})


def test_a_dry_run_shows_the_dates_in_their_order_and_changes_nothing(api) -> None:
    shown = api.create_backfill_dry_run(body(run_backwards=True))
    assert [one.logical_date for one in shown.backfills] == [START + timedelta(days=n) for n in (2, 1, 0)]
    assert shown.total_entries == 3
    assert not Backfill.objects.exists()


def test_a_backfill_is_made_as_asked_and_shown(api) -> None:
    made = api.create_backfill(body(dag_run_conf={"x": 1}, max_active_runs=2, reprocess_behavior="failed"))
    assert (made.dag_id, made.dag_display_name, made.from_date) == ("daily", "Every day", START)
    assert (made.dag_run_conf, made.max_active_runs, made.reprocess_behavior.value) == ({"x": 1}, 2, "failed")
    assert (made.is_paused, made.completed_at) == (False, None)
    assert BackfillSlot.objects.filter(backfill_id=made.id).count() == 3
    assert api.get_backfill(made.id) == made
    found = api.list_backfills("daily")
    assert (found.backfills, found.total_entries) == ([made], 1)
    assert api.list_backfills("other").total_entries == 0


def test_a_backfill_is_paused_and_cancelled(api) -> None:
    made = api.create_backfill(body())
    assert api.pause_backfill(made.id).is_paused is True
    assert api.unpause_backfill(made.id).is_paused is False
    assert api.cancel_backfill(made.id).completed_at is not None
    assert set(Audit.objects.values_list("event", "owner")) == {
        (f"{verb}_backfill", "ada") for verb in ("create", "pause", "unpause", "cancel")
    }


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"dag_id": "nope"}, 404),
        ({"to_date": START - timedelta(days=1)}, 422),
        ({"to_date": START + timedelta(days=365 * 100)}, 422),
        ({"max_active_runs": 0}, 422),
    ],
)
def test_what_cannot_be_is_answered_with_its_status(api, fields, status) -> None:
    for call in (api.create_backfill, api.create_backfill_dry_run):
        with pytest.raises(airflow.ApiException) as refused:
            call(body(**fields))
        assert refused.value.status == status


def test_a_second_backfill_and_a_cancelled_one_are_conflicts(api) -> None:
    made = api.create_backfill(body())
    with pytest.raises(airflow.ApiException) as second:
        api.create_backfill(body())
    api.cancel_backfill(made.id)
    with pytest.raises(airflow.ApiException) as over:
        api.pause_backfill(made.id)
    assert (second.value.status, over.value.status) == (409, 409)


def test_a_list_needs_its_dag(http) -> None:
    answer = http.get("backfills")
    assert (answer.status_code, answer.json()["detail"][0]["loc"]) == (422, ["query", "dag_id"])
