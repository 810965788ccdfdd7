"""A moment of a start document is what pendulum itself makes of it, by either way."""

from __future__ import annotations

import datetime as dt

import pendulum
import pytest

from scheduler_app.sdk.runs import moment


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-02T03:04:05.678901+00:00",
        "2026-01-02T03:04:05+00:00",
        "2026-01-02T03:04:05+02:00",
        "2026-01-02T03:04:05",
    ],
)
def test_a_moment_is_as_pendulum_makes_it(text: str) -> None:
    value = dt.datetime.fromisoformat(text)
    expected = pendulum.instance(value if value.tzinfo else value.replace(tzinfo=dt.UTC))
    found = moment(text)
    assert found == expected
    assert (type(found), found.tzinfo, found.isoformat(), found.timezone_name) == (
        type(expected),
        expected.tzinfo,
        expected.isoformat(),
        expected.timezone_name,
    )
