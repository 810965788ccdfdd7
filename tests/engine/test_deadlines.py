"""When a run is late."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduler_app.engine.deadlines import RunTimes, deadline_at, run_timeout_at, sla_at
from tests.engine.scenario import NOW

HOUR = timedelta(hours=1)
RUN = RunTimes(run_after=NOW, logical_date=NOW - HOUR, data_interval_end=NOW, queued_at=NOW + HOUR)
AVERAGE = {"kind": "average_runtime", "max_runs": 3, "min_runs": 2}


@pytest.mark.parametrize(
    ("reference", "start"),
    [
        ({"kind": "dagrun_logical_date"}, NOW - HOUR),
        ({"kind": "dagrun_queued_at"}, NOW + HOUR),
        ({"kind": "fixed_datetime", "at": "2024-03-20T00:00:00+00:00"}, NOW + timedelta(days=5)),
    ],
)
def test_a_deadline_counts_from_its_reference(reference: dict[str, str], start: object) -> None:
    assert deadline_at({"reference": reference, "interval": 0}, RUN) == start


def test_an_average_counts_the_latest_runs_and_wants_enough_of_them() -> None:
    deadline = {"reference": AVERAGE, "interval": 5}
    assert deadline_at(deadline, RUN, [10.0, 20.0, 30.0, 1000.0]) == NOW + HOUR + timedelta(seconds=25)
    assert deadline_at(deadline, RUN, [10.0]) is None


def test_a_run_without_the_reference_has_no_deadline() -> None:
    assert deadline_at({"reference": {"kind": "dagrun_logical_date"}, "interval": 5}, RunTimes(NOW)) is None
    assert deadline_at({"reference": AVERAGE, "interval": 5}, RunTimes(NOW), [1.0, 2.0]) is None


def test_an_unknown_reference_is_named() -> None:
    with pytest.raises(ValueError, match="Unknown deadline reference 'full_moon': use dagrun_logical_date"):
        deadline_at({"reference": {"kind": "full_moon"}, "interval": 5}, RUN)


def test_slas_and_time_outs() -> None:
    assert sla_at(60, RUN) == NOW + timedelta(minutes=1)
    assert sla_at(60, RunTimes(NOW - HOUR)) == NOW - HOUR + timedelta(minutes=1)
    assert run_timeout_at(60, NOW) == NOW + timedelta(minutes=1)
    assert run_timeout_at(None, NOW) is None
    assert run_timeout_at(60, None) is None
