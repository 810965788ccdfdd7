"""Cron expressions in zones: what fires when the clock is turned."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler_app.timetables.cron import CronCalendar
from scheduler_app.timetables.cron_words import describe


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fires(calendar: CronCalendar, start: str, end: str) -> list[str]:
    """Fire times in [start, end), as "DDTHH:MM" in UTC."""
    found = []
    fire = calendar.at_or_after(at(start))
    while fire < at(end):
        found.append(fire.strftime("%dT%H:%M"))
        fire = calendar.next(fire)
    return found


def test_a_fixed_time_inside_the_missing_hour_keeps_its_offset() -> None:
    calendar = CronCalendar("30 2 * * *", "America/New_York")
    assert fires(calendar, "2024-03-09", "2024-03-12") == ["09T07:30", "10T07:30", "11T06:30"]


@pytest.mark.parametrize(
    ("gap", "expected"), [("same_offset", ["10T07:30"]), ("next_valid", ["10T07:00"]), ("skip", [])]
)
def test_BC_35_the_gap_policy_says_what_becomes_of_a_missing_time(gap: str, expected: list[str]) -> None:
    calendar = CronCalendar("30 2 * * *", "America/New_York", gap=gap)
    assert fires(calendar, "2024-03-10", "2024-03-11") == expected


@pytest.mark.parametrize(
    ("overlap", "expected"),
    [(None, ["03T06:30"]), ("first", ["03T05:30"]), ("second", ["03T06:30"]), ("both", ["03T05:30", "03T06:30"])],
)
def test_the_overlap_policy_chooses_among_two(overlap: str | None, expected: list[str]) -> None:
    calendar = CronCalendar("30 1 * * *", "America/New_York", overlap=overlap)
    assert fires(calendar, "2024-11-03", "2024-11-04") == expected


def test_BC_37_every_elapsed_hour_of_the_repeated_hour_fires_once() -> None:
    hourly = CronCalendar("0 * * * *", "America/Los_Angeles")
    assert fires(hourly, "2026-11-01T07:00", "2026-11-01T12:00") == [f"01T{hour:02}:00" for hour in range(7, 12)]
    half = CronCalendar("*/30 * * * *", "America/Los_Angeles")
    assert fires(half, "2026-11-01T08:00", "2026-11-01T10:00") == ["01T08:00", "01T08:30", "01T09:00", "01T09:30"]


def test_every_elapsed_hour_fires_once_over_the_missing_hour() -> None:
    hourly = CronCalendar("0 * * * *", "America/Los_Angeles")
    assert fires(hourly, "2026-03-08T08:00", "2026-03-08T12:00") == ["08T08:00", "08T09:00", "08T10:00", "08T11:00"]


def test_every_four_hours_goes_on_over_the_change() -> None:
    calendar = CronCalendar("20 */4 * * *", "America/Los_Angeles")
    expected = ["08T08:20", "08T12:20", "08T15:20", "08T19:20"]
    assert fires(calendar, "2026-03-08T08:00", "2026-03-08T20:00") == expected
    # asked from the middle of the changed morning, the same fires
    assert calendar.next(at("2026-03-08T11:45")) == at("2026-03-08T12:20")
    assert calendar.prev(at("2026-03-08T15:20")) == at("2026-03-08T12:20")


def test_BC_123_an_hour_on_the_change_day_is_not_late() -> None:
    calendar = CronCalendar("4 16 * * *", "America/New_York")
    assert fires(calendar, "2026-03-07", "2026-03-10") == ["07T21:04", "08T20:04", "09T20:04"]


def test_BC_121_a_zone_far_behind_utc_fires_once_a_day() -> None:
    calendar = CronCalendar("0 23 * * *", "Pacific/Honolulu")
    assert fires(calendar, "2024-01-01", "2024-01-04") == ["01T09:00", "02T09:00", "03T09:00"]


def test_presets_offsets_and_seconds() -> None:
    assert fires(CronCalendar("@quarterly"), "2024-01-02", "2024-10-02") == ["01T00:00", "01T00:00", "01T00:00"]
    assert fires(CronCalendar("0 6 * * *", "+02:00"), "2024-01-01", "2024-01-02") == ["01T04:00"]
    assert CronCalendar("0 0 * * * 30").next(at("2024-01-01")) == at("2024-01-01T00:00:30")


@pytest.mark.parametrize("expression", ["61 25 * * *", "sometimes", "0 0 30 2 *", "", "* * *"])
def test_an_expression_that_never_fires_is_named(expression: str) -> None:
    with pytest.raises(ValueError, match="is not valid or never fires") as caught:
        CronCalendar(expression)
    assert repr(expression) in str(caught.value)


def test_an_unknown_zone_or_policy_is_named() -> None:
    with pytest.raises(ValueError, match="no time zone 'Mars/Base'"):
        CronCalendar("@daily", "Mars/Base")
    with pytest.raises(ValueError, match="not 'later' and None"):
        CronCalendar("@daily", gap="later")


CALENDARS = st.builds(
    CronCalendar,
    st.sampled_from(
        [
            "0 * * * *", "*/20 * * * *", "30 2 * * *", "30 1 * * *", "20 */4 * * *", "0 0 * * 1", "15 1,2 * * *",
            "5 4 1 * *", "0 0,12 1 1,7 *", "0 1,5 * * sun",
        ]
    ),
    st.sampled_from(["UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"]),
    gap=st.sampled_from([None, "same_offset", "next_valid", "skip"]),
    overlap=st.sampled_from([None, "first", "second", "both"]),
)  # fmt: skip
# the weeks around the changes of 2024, or any time of two years
INSTANTS = st.one_of(
    st.datetimes(datetime(2024, 3, 8), datetime(2024, 4, 8)),
    st.datetimes(datetime(2024, 10, 4), datetime(2024, 11, 4)),
    st.datetimes(datetime(2023, 1, 1), datetime(2025, 1, 1)),
).map(lambda moment: moment.replace(microsecond=0, tzinfo=UTC))


@given(CALENDARS, INSTANTS)
@settings(max_examples=400, deadline=None)
def test_next_and_prev_agree_on_one_set_of_fires(calendar: CronCalendar, moment: datetime) -> None:
    coming, past = calendar.next(moment), calendar.prev(moment)
    assert past < moment < coming
    assert calendar.next(coming - timedelta(seconds=1)) == coming
    assert calendar.prev(past + timedelta(seconds=1)) == past
    # nothing fires between the two but, perhaps, the instant itself
    assert calendar.next(past) in (coming, moment)
    assert calendar.prev(coming) in (past, moment)
    assert calendar.at_or_after(coming) == calendar.at_or_before(coming) == coming


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("5 4 * * 1", "At 04:05 on Monday"),
        ("0 0 1 * *", "At 00:00 on day 1 of the month"),
        ("0 * * * *", "Every hour"),
        ("20 * * * *", "At 20 minutes past every hour"),
        ("*/15 * * * *", "Every 15 minutes"),
        ("* * * * *", "Every minute"),
        ("30 9 * * sun", "At 09:30 on Sunday"),
        ("1-5 4 * 2 *", "Cron 1-5 4 * 2 *"),
    ],
)
def test_simple_expressions_in_words(expression: str, words: str) -> None:
    assert describe(expression) == words
