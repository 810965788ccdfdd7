"""Pendulum's moments as XComs."""

from __future__ import annotations

import json

import pendulum
import pytest

from scheduler_app import wire
from scheduler_app.sdk import moments  # noqa: F401  (teaches the border about them)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (pendulum.datetime(2024, 1, 2, tz="UTC"), "2024-01-02T00:00:00+00:00"),
        (pendulum.datetime(2024, 7, 2, tz="Europe/Paris"), "2024-07-02T00:00:00+02:00[Europe/Paris]"),
        (pendulum.datetime(2024, 1, 2, tz=pendulum.fixed_timezone(5400)), "2024-01-02T00:00:00+01:30"),
        (pendulum.naive(2024, 1, 2, 3, 4, 5, 6), "2024-01-02T03:04:05.000006"),
        # the second 02:30 of the night in which the clocks go back
        (pendulum.datetime(2024, 10, 27, 1, 30).in_timezone("Europe/Paris"), "2024-10-27T02:30:00+01:00[Europe/Paris]"),
    ],
)
def test_a_moment_comes_back_with_its_zone(value: pendulum.DateTime, text: str) -> None:
    document = json.loads(json.dumps(wire.encode(value)))
    assert document == {"__type": "moment", "__value": text}
    found = wire.decode(document)
    assert (type(found), found, found.timezone_name) == (pendulum.DateTime, value, value.timezone_name)
    assert found.add(months=1) == value.add(months=1)
