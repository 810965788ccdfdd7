"""When a run is late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_app.engine.deadlines import RunTimes, deadline_at, run_timeout_at, sla_at
from tests.engine.scenario import NOW

HOUR = timedelta(hours=1)
RUN = RunTimes(run_after=NOW, logical_date=NOW - HOUR, data_interval_end=NOW, queued_at=NOW + HOUR)
AVERAGE = {"average_runtime": {"max_runs": 3, "min_runs": 2}}


@pytest.mark.parametrize(
    ("reference", "start"),
    [
        ("logical_date", NOW - HOUR),
        ("run_after", NOW),
        ("queued_at", NOW + HOUR),
        ({"fixed": "2024-03-20T00:00:00+00:00"}, NOW + timedelta(days=5)),
    ],
)
def test_a_deadline_counts_from_its_reference(reference: Any, start: object) -> None:
    assert deadline_at({"reference": reference, "interval": 0}, RUN) == start


def test_an_average_counts_the_latest_runs_and_wants_enough_of_them() -> None:
    deadline = {"reference": AVERAGE, "interval": 5}
    assert deadline_at(deadline, RUN, [10.0, 20.0, 30.0, 1000.0]) == NOW + HOUR + timedelta(seconds=25)
    assert deadline_at(deadline, RUN, [10.0]) is None


def test_a_run_without_the_reference_has_no_deadline() -> None:
    assert deadline_at({"reference": "logical_date", "interval": 5}, RunTimes(NOW)) is None


@pytest.mark.parametrize("reference", ["someday", {"full_moon": 1}])
def test_an_unknown_reference_is_named(reference: Any) -> None:
    with pytest.raises(ValueError, match="Unknown deadline reference"):
        deadline_at({"reference": reference, "interval": 5}, RUN)


def test_slas_and_time_outs() -> None:
    assert sla_at(60, RUN) == NOW + timedelta(minutes=1)
    assert sla_at(60, RunTimes(NOW - HOUR)) == NOW - HOUR + timedelta(minutes=1)
    assert run_timeout_at(60, NOW) == NOW + timedelta(minutes=1)
    assert run_timeout_at(None, NOW) is None
    assert run_timeout_at(60, None) is None
