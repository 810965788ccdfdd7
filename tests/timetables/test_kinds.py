"""Each kind of timetable, through the documents that the SDK writes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_app.timetables import KINDS, DataInterval, Restriction, RunInfo, from_doc


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NOW = at("2024-06-01T10:30")


def restriction(
    earliest: str | None = None, latest: str | None = None, *, catchup: bool = True, now: datetime = NOW
) -> Restriction:
    return Restriction(at(earliest) if earliest else None, at(latest) if latest else None, catchup, now)


def chain(doc: dict[str, Any], limits: Restriction, most: int = 10) -> list[RunInfo]:
    timetable, last, found = from_doc(doc), None, []
    while len(found) < most and (info := timetable.next_info(last, limits)) is not None:
        found.append(info)
        last = info.interval
    return found


def exact(*texts: str) -> list[RunInfo]:
    return [RunInfo.exact(at(text)) for text in texts]


def test_a_cron_string_runs_at_each_tick_between_its_dates() -> None:
    infos = chain({"kind": "cron_trigger", "expression": "15 6 * * *"}, restriction("2024-01-01", "2024-01-05"))
    assert infos == exact("2024-01-01T06:15", "2024-01-02T06:15", "2024-01-03T06:15", "2024-01-04T06:15")


def test_a_cron_interval_runs_at_the_end_of_what_it_is_about() -> None:
    infos = chain({"kind": "cron_interval", "expression": "0 6 * * *"}, restriction("2024-01-01T07:00", "2024-01-05"))
    assert infos == [RunInfo.over(at(f"2024-01-0{day}T06:00"), at(f"2024-01-0{day + 1}T06:00")) for day in (2, 3, 4)]


def test_a_timedelta_counts_from_the_start_date() -> None:
    infos = chain({"kind": "delta_trigger", "delta": 7 * 3600}, restriction("2024-01-01T01:00", "2024-01-02T06:00"))
    assert infos == exact(
        "2024-01-01T01:00", "2024-01-01T08:00", "2024-01-01T15:00", "2024-01-01T22:00", "2024-01-02T05:00"
    )


def test_a_timedelta_without_catchup_starts_now() -> None:
    timetable = from_doc({"kind": "delta_trigger", "delta": 7 * 3600})
    limits = restriction("2024-01-01T01:00", catchup=False)
    assert timetable.next_info(None, limits) == RunInfo.exact(NOW)
    assert timetable.next_info(DataInterval.exact(NOW), limits) == RunInfo.exact(NOW + timedelta(hours=7))


def test_once_runs_at_its_start_date_catchup_or_not() -> None:
    assert chain({"kind": "once"}, restriction("2024-01-01T05:00", catchup=False)) == exact("2024-01-01T05:00")
    assert chain({"kind": "once"}, restriction()) == [RunInfo.exact(NOW)]
    assert chain({"kind": "once"}, restriction("2024-01-02", "2024-01-01")) == []


def test_without_catchup_a_cron_runs_its_latest_tick_and_then_the_next() -> None:
    doc = {"kind": "cron_trigger", "expression": "@daily"}
    assert chain(doc, restriction("2024-01-01", catchup=False), 2) == exact("2024-06-01", "2024-06-02")
    assert chain(doc, restriction("2024-07-01T12:00", catchup=False), 1) == exact("2024-07-02")


def test_without_catchup_an_interval_that_is_over_runs() -> None:
    doc = {"kind": "cron_interval", "expression": "@hourly"}
    limits = restriction("2024-01-01", catchup=False)
    assert chain(doc, limits, 1) == [RunInfo.over(at("2024-06-01T09:00"), at("2024-06-01T10:00"))]
    boundary = restriction("2024-01-01", catchup=False, now=at("2024-06-01T10:00"))
    assert chain(doc, boundary, 1) == [RunInfo.over(at("2024-06-01T09:00"), at("2024-06-01T10:00"))]


def test_a_trigger_with_an_interval_is_about_the_time_before_it() -> None:
    doc = {"kind": "cron_trigger", "expression": "0 6 * * *", "interval": 3600}
    assert chain(doc, restriction("2024-01-01"), 1) == [RunInfo.over(at("2024-01-01T05:00"), at("2024-01-01T06:00"))]
    month = {
        "kind": "delta_trigger",
        "delta": {"relativedelta": {"months": 1}},
        "interval": {"relativedelta": {"days": 2}},
    }
    assert [info.run_after for info in chain(month, restriction("2024-01-31"), 3)] == [
        at("2024-01-31"),
        at("2024-02-29"),
        at("2024-03-29"),
    ]


@pytest.mark.parametrize(
    ("run_immediately", "first"),
    [
        (True, "2024-06-01T00:00"),
        (False, "2024-06-02T00:00"),
        (11 * 3600, "2024-06-01T00:00"),
        (60, "2024-06-02T00:00"),
    ],
)
def test_without_a_start_date_run_immediately_says_whether_the_last_tick_runs(
    run_immediately: bool | int, first: str
) -> None:
    doc = {"kind": "cron_trigger", "expression": "@daily", "run_immediately": run_immediately}
    assert chain(doc, restriction(), 1) == exact(first)


def test_run_immediately_false_still_runs_a_tick_that_is_hardly_over() -> None:
    doc = {"kind": "cron_trigger", "expression": "@daily"}
    assert chain(doc, restriction(now=at("2024-06-01T02:00")), 1) == exact("2024-06-01")
    assert chain(doc, restriction(now=at("2024-06-01T02:30")), 1) == exact("2024-06-02")


def test_BC_41_the_first_interval_after_a_change_of_schedule_leaves_no_hole_and_no_overlap() -> None:
    old = chain({"kind": "cron_interval", "expression": "30 * * * *"}, restriction("2024-01-01T00:30"), 2)
    new = from_doc({"kind": "cron_interval", "expression": "32 * * * *"})
    first = new.next_info(old[-1].interval, restriction("2024-01-01T00:30"))
    assert first == RunInfo.over(at("2024-01-01T02:30"), at("2024-01-01T02:32"))
    assert new.next_info(first.interval, restriction("2024-01-01T00:30")) == RunInfo.over(
        at("2024-01-01T02:32"), at("2024-01-01T03:32")
    )


def test_several_crons_fire_once_at_one_instant() -> None:
    doc = {"kind": "multi_cron_trigger", "expressions": ["0 6 * * *", "0 */6 * * *", "30 7 * * *"]}
    infos = chain(doc, restriction("2024-01-01T01:00", "2024-01-01T12:00"))
    assert infos == exact("2024-01-01T06:00", "2024-01-01T07:30", "2024-01-01T12:00")
    assert from_doc(doc).summary == "0 6 * * *, 0 */6 * * *, 30 7 * * *"


def test_several_crons_without_catchup_run_the_latest_that_is_due() -> None:
    doc = {"kind": "multi_cron_trigger", "expressions": ["0 6 * * *", "0 8 * * *", "0 12 * * *"]}
    assert chain(doc, restriction("2024-01-01", catchup=False), 2) == exact("2024-06-01T08:00", "2024-06-01T12:00")


def test_events_run_at_their_dates_and_the_past_only_with_catchup() -> None:
    doc = {"kind": "events", "event_dates": [f"2024-0{month}-02T00:00:00+00:00" for month in (7, 1, 5, 1)]}
    assert chain(doc, restriction("2024-02-01")) == exact("2024-05-02", "2024-07-02")
    assert chain(doc, restriction(catchup=False)) == exact("2024-07-02")
    assert chain(doc, restriction(latest="2024-03-01")) == exact("2024-01-02")
    assert from_doc(doc).summary == "3 events"


def test_a_manual_run_of_events_may_be_tied_to_them() -> None:
    dates = ["2024-01-02T00:00:00+00:00", "2024-07-02T00:00:00+00:00"]
    free = from_doc({"kind": "events", "event_dates": dates})
    tied = from_doc({"kind": "events", "event_dates": dates, "restrict_to_events": True})
    assert free.infer_manual(NOW) == DataInterval.exact(NOW)
    assert tied.infer_manual(NOW) == DataInterval.exact(at("2024-01-02"))
    assert tied.infer_manual(at("2023-01-01")) == DataInterval.exact(at("2024-01-02"))


def test_BC_27_continuous_follows_itself_and_waits_for_a_start_date_that_was_moved() -> None:
    timetable = from_doc({"kind": "continuous"})
    first = timetable.next_info(None, restriction("2024-05-01"))
    assert first == RunInfo.over(at("2024-05-01"), NOW)
    later = NOW + timedelta(minutes=5)
    assert timetable.next_info(first.interval, restriction("2024-05-01", now=later)) == RunInfo.over(NOW, later)
    moved = timetable.next_info(first.interval, restriction("2024-07-01", now=later))
    assert moved is not None
    assert moved.run_after >= at("2024-07-01")
    assert timetable.active_runs_limit == 1


def test_a_delta_interval_runs_at_its_end() -> None:
    doc = {"kind": "delta_interval", "delta": 3600}
    assert chain(doc, restriction("2024-01-01T00:20"), 2) == [
        RunInfo.over(at("2024-01-01T00:20"), at("2024-01-01T01:20")),
        RunInfo.over(at("2024-01-01T01:20"), at("2024-01-01T02:20")),
    ]
    assert chain(doc, restriction("2024-01-01T00:20", catchup=False), 1) == [
        RunInfo.over(at("2024-06-01T09:00"), at("2024-06-01T10:00"))
    ]


def test_manual_intervals() -> None:
    def manual(**doc: object) -> DataInterval | None:
        return from_doc(dict(doc)).infer_manual(NOW)

    assert manual(kind="null") == manual(kind="asset", condition={"all": []}) == DataInterval.exact(NOW)
    assert manual(kind="cron_trigger", expression="@daily") == DataInterval.exact(NOW)
    assert manual(kind="cron_interval", expression="@daily") == DataInterval(at("2024-05-31"), at("2024-06-01"))
    assert manual(kind="delta_interval", delta=3600) == DataInterval(NOW - timedelta(hours=1), NOW)
    assert manual(kind="custom", **{"class": "mine.Own"}) is None


def test_BC_39_a_manual_interval_over_the_missing_hour_is_not_empty() -> None:
    timetable = from_doc({"kind": "cron_interval", "expression": "0 2 * * *", "timezone": "America/New_York"})
    assert timetable.infer_manual(at("2024-03-10T07:30")) == DataInterval(
        at("2024-03-09T07:00"), at("2024-03-10T07:00")
    )


def test_assets_never_run_by_time_but_assets_or_time_do() -> None:
    condition = {"asset": {"name": "a", "uri": "a"}}
    assert chain({"kind": "asset", "condition": condition}, restriction()) == []
    doc = {
        "kind": "asset_or_time",
        "condition": condition,
        "timetable": {"kind": "cron_trigger", "expression": "@daily"},
    }
    assert chain(doc, restriction("2024-01-01"), 1) == exact("2024-01-01")
    assert (from_doc(doc).summary, from_doc(doc).asset_condition) == ("Asset or 0 0 * * *", condition)


def test_a_custom_timetable_goes_by_the_slots_that_were_planned() -> None:
    planned = [
        {
            "run_after": "2024-01-02T00:00:00+00:00",
            "start": "2024-01-01T00:00:00+00:00",
            "end": "2024-01-02T00:00:00+00:00",
        },
        {"run_after": "2024-01-03T00:00:00+00:00", "logical_date": "2024-01-02T12:00:00+00:00"},
        {"run_after": "2024-01-04T00:00:00+00:00"},
    ]
    doc = {"kind": "custom", "class": "mine.Own", "planned": planned}
    timetable = from_doc(doc)
    first = RunInfo.over(at("2024-01-01"), at("2024-01-02"))
    second = RunInfo(at("2024-01-02T12:00"), None, at("2024-01-03"))
    third = RunInfo(None, None, at("2024-01-04"))
    assert timetable.next_info(None, restriction()) == first
    assert timetable.next_info(first.interval, restriction()) == second
    assert timetable.next_info(DataInterval.exact(second.run_after), restriction()) == third
    assert timetable.next_info(DataInterval.exact(third.run_after), restriction()) is None
    assert timetable.next_info(first.interval, restriction(latest="2024-01-02")) is None
    assert timetable.summary == "Own"


def test_a_custom_timetable_without_catchup_passes_over_the_planned_slots_that_were_missed() -> None:
    planned = [{"run_after": f"2024-01-0{day}T00:00:00+00:00"} for day in (2, 3, 4)]
    timetable = from_doc({"kind": "custom", "class": "mine.Own", "planned": planned})
    for now, expected in (
        ("2024-01-01", "2024-01-02"),
        ("2024-01-03T12:00", "2024-01-03"),
        ("2024-02-01", "2024-01-04"),
    ):
        info = timetable.next_info(None, restriction(catchup=False, now=at(now)))
        assert info is not None
        assert info.run_after == at(expected)


def test_a_wrong_document_says_what_is_wrong() -> None:
    for doc, words in (
        ({"kind": "weekly"}, "Unknown timetable kind 'weekly'"),
        ({}, "Unknown timetable kind None"),
        ({"kind": "cron_trigger"}, "'cron_trigger' needs the key 'expression'"),
        ({"kind": "cron_trigger", "expression": "61 25 * * *"}, "61 25 * * *"),
        ({"kind": "delta_trigger", "delta": 0}, "must be positive, not 0:00:00"),
        ({"kind": "multi_cron_trigger", "expressions": []}, "needs at least one"),
    ):
        with pytest.raises(ValueError, match=words.replace("*", r"\*")):
            from_doc(doc)


def test_summaries_are_those_of_the_api() -> None:
    docs: dict[str, dict[str, Any]] = {
        "None": {"kind": "null"},
        "@once": {"kind": "once"},
        "@continuous": {"kind": "continuous"},
        "0 0 * * *": {"kind": "cron_trigger", "expression": "@daily"},
        "7:00:00": {"kind": "delta_trigger", "delta": 25200},
        "Asset": {"kind": "asset", "condition": {"all": []}},
    }
    assert {from_doc(doc).summary: doc for doc in docs.values()} == docs
    periodic = {kind: from_doc(doc).periodic for kind, doc in docs.items()}
    assert [kind for kind, yes in periodic.items() if yes] == ["0 0 * * *", "7:00:00"]


def test_every_kind_has_its_row_in_the_documentation() -> None:
    import scheduler_app.timetables as package

    assert package.__doc__ is not None
    rows = {line.split()[0] for line in package.__doc__.splitlines() if line and line[0].isalpha()}
    assert rows >= KINDS.keys()
