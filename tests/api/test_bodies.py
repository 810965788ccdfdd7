"""Values in request bodies."""

from __future__ import annotations

import datetime as dt

import pytest
from rest_framework import exceptions

from api import bodies


@pytest.mark.parametrize(
    "text",
    ["2024-06-01T08:30:00Z", "2024-06-01T10:30:00+02:00", "2024-06-01T08:30:00.000 00:00", "2024-06-01 10:30:00+0200"],
)
def test_an_instant_with_its_offset_is_taken(text: str) -> None:
    assert bodies.Moment().to_internal_value(text) == dt.datetime(2024, 6, 1, 8, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize("text", ["2024-06-01T08:30:00", "2024-06-01", "2024-06-01 08:30"])
def test_an_instant_without_an_offset_is_refused(text: str) -> None:
    with pytest.raises(exceptions.ValidationError) as caught:
        bodies.Moment().to_internal_value(text)
    assert caught.value.detail[0].code == "timezone_aware"


@pytest.mark.parametrize("value", ["soon", 5, None, "2024-13-01T00:00:00Z"])
def test_what_is_no_instant_is_refused(value: object) -> None:
    with pytest.raises(exceptions.ValidationError) as caught:
        bodies.Moment().to_internal_value(value)
    assert caught.value.detail[0].code == "datetime"
