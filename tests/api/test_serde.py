"""The form of XCom values that Airflow's clients expect."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import pendulum
import pytest

from api import serde
from scheduler_app import wire
from scheduler_app.sdk import moments  # noqa: F401  (teaches the border about pendulum)


def described(name: str, version: int, data: Any) -> dict[str, Any]:
    return {"__classname__": name, "__version__": version, "__data__": data}


UTC = described("builtins.tuple", 1, ["UTC", "pendulum.tz.timezone.FixedTimezone", 1, True])
PARIS = described("builtins.tuple", 1, ["Europe/Paris", "pendulum.tz.timezone.Timezone", 1, True])


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        ({"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
        ({"deep": (1, 2)}, {"deep": described("builtins.tuple", 1, [1, 2])}),
        ({3}, described("builtins.set", 1, [3])),
        (frozenset("z"), described("builtins.frozenset", 1, ["z"])),
        (
            dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC),
            described("datetime.datetime", 2, {"timestamp": 1704164645.000006, "tz": UTC}),
        ),
        (dt.datetime(2024, 1, 2, 3), described("datetime.datetime", 2, {"timestamp": 1704164400.0, "tz": None})),
        (
            pendulum.datetime(2024, 1, 2, tz="Europe/Paris"),
            described("pendulum.datetime.DateTime", 2, {"timestamp": 1704150000.0, "tz": PARIS}),
        ),
        (dt.date(2024, 1, 2), described("datetime.date", 2, "2024-01-02")),
        (dt.timedelta(days=1, seconds=2), described("datetime.timedelta", 2, 86402.0)),
        (decimal.Decimal("1.50"), described("decimal.Decimal", 1, 1.5)),
        (decimal.Decimal("7"), described("decimal.Decimal", 1, 7)),
        (uuid.UUID(int=5), described("uuid.UUID", 1, "00000000-0000-0000-0000-000000000005")),
        ({1: "a"}, {"1": "a"}),
        (b"raw", "cmF3"),
    ],
)
def test_a_value_is_shown_as_airflow_shows_it(value: Any, seen: Any) -> None:
    assert serde.shown(wire.encode(value)) == seen
