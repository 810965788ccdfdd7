"""The arguments of a DAG that are ours: checked where they are written, carried in the document."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from scheduler_app.sdk.dag import DAG
from scheduler_app.sdk.operators.empty import EmptyOperator
from scheduler_app.sdk.serialize import serialize
from scheduler_app.sdk.timetables import CronTriggerTimetable

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


def document(**options: Any) -> dict[str, Any]:
    with DAG("d", start_date=START, **{"schedule": "30 2 * * *", **options}) as dag:
        EmptyOperator(task_id="a")
    return serialize(dag)


def test_a_dag_that_says_nothing_has_the_document_that_it_had() -> None:
    ours = {"misfire_policy", "misfire_limit", "overlap_policy", "schedule_jitter", "run_state"}
    made = document()
    assert ours.isdisjoint(made)
    assert {"gap", "overlap"}.isdisjoint(made["timetable"])


def test_what_a_dag_says_is_in_its_document() -> None:
    made = document(
        misfire_policy="all",
        misfire_limit=3,
        overlap_policy="skip",
        schedule_jitter=dt.timedelta(minutes=5),
        run_state="any_failed",
        dst_gap="next_valid",
        dst_overlap="both",
    )
    assert {key: made[key] for key in ("misfire_policy", "misfire_limit", "overlap_policy")} == {
        "misfire_policy": "all",
        "misfire_limit": 3,
        "overlap_policy": "skip",
    }
    assert (made["schedule_jitter"], made["run_state"]) == (300.0, "any_failed")
    assert (made["timetable"]["gap"], made["timetable"]["overlap"]) == ("next_valid", "both")


def test_two_dags_that_share_a_timetable_have_each_their_own_clock_rule() -> None:
    shared = CronTriggerTimetable("30 2 * * *", timezone="Europe/Berlin")
    assert document(schedule=shared, dst_gap="skip")["timetable"]["gap"] == "skip"
    assert "gap" not in document(schedule=shared)["timetable"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"misfire_policy": "lastest"}, r"misfire_policy of DAG 'd' is one of skip, latest, all.*latest"),
        ({"misfire_limit": 2}, "beside misfire_policy='all'"),
        ({"misfire_policy": "all", "misfire_limit": 0}, "a number from 1 on"),
        ({"overlap_policy": "drop"}, "queue, skip, cancel_oldest"),
        ({"run_state": "any"}, "leaves, any_failed"),
        ({"dst_gap": "skip", "schedule": dt.timedelta(hours=1)}, "need a schedule by a cron expression"),
        ({"dst_gap": "skip", "schedule": None}, "need a schedule by a cron expression"),
    ],
)
def test_a_wrong_argument_says_what_it_may_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        document(**options)


def test_a_jitter_is_a_time() -> None:
    with pytest.raises(TypeError, match="schedule_jitter of DAG 'd' is a timedelta"):
        document(schedule_jitter=30)
