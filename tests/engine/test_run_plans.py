"""Which scheduled run comes next."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_app.engine.run_plans import (
    RunPlan,
    ScheduleFacts,
    manual_interval,
    next_plan,
    preview,
    run_id,
    slots_between,
)
from scheduler_app.engine.timetable import DataInterval, Timetable
from scheduler_app.timetables import from_doc


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


HOURLY = from_doc({"kind": "cron_trigger", "expression": "0 * * * *"})
MINUTELY = from_doc({"kind": "cron_trigger", "expression": "* * * * *"})


def facts(now: str, last: str | None = None, **fields: Any) -> ScheduleFacts:
    created = at(last) if last else None
    given = {"earliest": at("2024-01-01"), "latest": None, "catchup": False} | fields
    return ScheduleFacts(DataInterval.exact(created) if created else None, created, now=at(now), **given)


def due(timetable: Timetable, given: ScheduleFacts) -> datetime | None:
    plan = next_plan(timetable, given)
    return None if plan is None else plan.run_after


def test_a_plan_is_what_the_row_will_hold() -> None:
    interval = from_doc({"kind": "cron_interval", "expression": "0 6 * * *"})
    assert next_plan(interval, facts("2024-01-09", catchup=True)) == RunPlan(
        at("2024-01-01T06:00"), at("2024-01-01T06:00"), at("2024-01-02T06:00"), at("2024-01-02T06:00"),
        "2024-01-02T06:00:00+00:00",
    )  # fmt: skip


def test_a_manual_run_does_not_move_the_schedule() -> None:
    # 07:00 was created; a manual run at 08:17 is no fact of the schedule
    assert due(HOURLY, facts("2024-06-01T08:30", "2024-06-01T07:00")) == at("2024-06-01T08:00")


def test_after_a_pause_without_catchup_one_run_at_most() -> None:
    given = facts("2024-06-01T11:35:30", "2024-06-01T11:31")
    assert due(MINUTELY, given) == at("2024-06-01T11:35")
    assert due(MINUTELY, facts("2024-06-01T11:35:30", "2024-06-01T11:35")) == at("2024-06-01T11:36")


def test_after_an_outage_the_policy_says_how_many_run() -> None:
    down = {"now": "2024-06-03T00:00:30", "last": "2024-06-01T00:00"}
    assert due(MINUTELY, facts(**down, misfire="latest", catchup=True)) == at("2024-06-03T00:00")
    assert due(MINUTELY, facts(**down, misfire="all")) == at("2024-06-01T00:01")
    assert due(MINUTELY, facts(**down, misfire="all", misfire_limit=3)) == at("2024-06-02T23:58")
    assert due(MINUTELY, facts(**down, misfire="all", misfire_limit=10**6)) == at("2024-06-01T00:01")
    assert due(MINUTELY, facts(**down, misfire="skip")) == at("2024-06-03T00:00")
    assert due(HOURLY, facts(now="2024-06-03T00:02", last="2024-06-01T00:00", misfire="skip")) == at("2024-06-03T01:00")


def test_a_limited_catch_up_hands_out_each_of_its_slots_once() -> None:
    given = facts("2024-06-03T00:00:30", "2024-06-01T00:00", misfire="all", misfire_limit=3)
    plans = [plan.run_after for plan in preview(MINUTELY, given, 4)]
    assert plans == [at(f"2024-06-0{day}") for day in ("2T23:58", "2T23:59", "3T00:00", "3T00:01")]


def test_an_event_that_is_just_due_is_not_lost() -> None:
    events = from_doc({"kind": "events", "event_dates": ["2024-06-01T10:00:00+00:00", "2024-06-02T10:00:00+00:00"]})
    assert due(events, facts("2024-06-01T10:00:01")) == at("2024-06-01T10:00")
    assert due(events, facts("2024-06-01T10:00:01", "2024-06-01T10:00")) == at("2024-06-02T10:00")
    assert due(events, facts("2024-06-01T10:02")) == at("2024-06-02T10:00")
    assert due(events, facts("2024-06-03")) is None


def test_BC_33_the_clock_change_is_no_crash_and_no_hole() -> None:
    pacific = from_doc({"kind": "cron_trigger", "expression": "20 */4 * * *", "timezone": "America/Los_Angeles"})
    for minute in range(0, 600, 7):
        now = at("2026-03-08T08:20") + timedelta(minutes=minute)
        plan = next_plan(pacific, facts("2026-03-08", "2026-03-08T08:20")._replace(now=now))
        expected = [at(f"2026-03-08T{hour}:20") for hour in ("12", "15", "19")]
        passed = [slot for slot in expected if slot <= now]
        assert plan is not None
        assert plan.run_after == (passed[-1] if passed else expected[0])


def test_a_change_to_an_earlier_schedule_does_not_go_back() -> None:
    last = DataInterval(at("2024-06-01T12:00"), at("2024-06-02T12:00"))
    given = facts("2024-06-02T13:00", catchup=True)._replace(last=last, last_run_after=last.end)
    assert due(HOURLY, given) == at("2024-06-02T13:00")


def test_a_schedule_that_is_over_has_no_plan() -> None:
    assert next_plan(HOURLY, facts("2024-06-01", latest=at("2024-02-01"))) is None
    assert next_plan(from_doc({"kind": "null"}), facts("2024-06-01")) is None
    assert preview(from_doc({"kind": "once"}), facts("2024-06-01"), 5) == [
        RunPlan(*[at("2024-01-01")] * 4, "2024-01-01T00:00:00+00:00")
    ]


def test_BC_29_a_picked_logical_date_gives_the_interval_of_the_scheduled_run() -> None:
    daily = from_doc({"kind": "cron_interval", "expression": "30 9 * * *"})
    when = at("2024-06-01T09:30")
    picked = manual_interval(daily, logical_date=when, run_after=at("2024-07-01"))
    assert picked == DataInterval(when, at("2024-06-02T09:30"))
    between = manual_interval(daily, logical_date=at("2024-06-01T12:00"), run_after=at("2024-07-01"))
    assert between == DataInterval(at("2024-05-31T09:30"), when)
    assert manual_interval(daily, logical_date=None, run_after=at("2024-06-01T12:00")) == between
    assert manual_interval(HOURLY, logical_date=when, run_after=when) == DataInterval.exact(when)


def test_run_ids_name_type_and_due_time() -> None:
    when = at("2024-01-03T06:00")
    assert run_id("scheduled", run_after=when, logical_date=at("2024-01-02")) == "scheduled__2024-01-03T06:00:00+00:00"
    assert run_id("manual", run_after=when, logical_date=when, token="AbCd") == "manual__2024-01-03T06:00:00+00:00"
    assert run_id("manual", run_after=when, logical_date=None, token="AbCd") == "manual__2024-01-03T06:00:00+00:00_AbCd"


def test_a_backfill_gets_every_slot_of_its_range() -> None:
    slots = [plan.run_after for plan in slots_between(HOURLY, at("2024-01-01T00:30"), at("2024-01-01T03:00"))]
    assert slots == [at(f"2024-01-01T0{hour}:00") for hour in (1, 2, 3)]
    assert list(slots_between(from_doc({"kind": "null"}), at("2024-01-01"), at("2024-01-02"))) == []


TIMETABLES = st.sampled_from(
    [
        {"kind": "cron_trigger", "expression": "*/20 * * * *", "timezone": "Europe/Berlin"},
        {"kind": "cron_trigger", "expression": "30 2 * * *", "timezone": "America/New_York", "interval": 3600},
        {"kind": "cron_interval", "expression": "0 */5 * * *", "timezone": "America/New_York"},
        {"kind": "multi_cron_trigger", "expressions": ["0 6 * * *", "15 */3 * * *"]},
        {"kind": "delta_trigger", "delta": 5000},
        {"kind": "delta_interval", "delta": 5000},
        {"kind": "continuous"},
        {"kind": "events", "event_dates": ["2024-03-10T06:00:00+00:00", "2024-03-31T01:00:00+00:00"]},
    ]
).map(from_doc)


@given(
    TIMETABLES,
    TIMETABLES,
    st.booleans(),
    st.sampled_from([(None, None), ("latest", None), ("all", 2), ("skip", None)]),
    st.lists(st.integers(1, 200_000), min_size=1, max_size=8),
)
@settings(max_examples=300, deadline=None)
def test_the_next_slot_never_lies_at_or_before_the_last_created_one(
    before: Timetable, after: Timetable, catchup: bool, policy: tuple[Any, Any], pauses: list[int]
) -> None:
    given = facts("2024-03-09", catchup=catchup, misfire=policy[0], misfire_limit=policy[1], earliest=at("2024-03-08"))
    for number, pause in enumerate(pauses):
        given = given._replace(now=given.now + timedelta(seconds=pause))
        # the schedule is changed halfway
        timetable = before if number < len(pauses) // 2 else after
        plan = next_plan(timetable, given)
        assert plan == next_plan(timetable, given)
        if plan is None or plan.run_after > given.now:
            continue
        assert given.last_run_after is None or plan.run_after > given.last_run_after
        start = plan.data_interval_start or plan.run_after
        end = plan.data_interval_end or plan.run_after
        given = given._replace(last=DataInterval(start, end), last_run_after=plan.run_after)
