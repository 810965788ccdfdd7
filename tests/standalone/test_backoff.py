from __future__ import annotations

from random import Random

import pytest

from scheduler_app.standalone.backoff import failures_in_a_row, restart_delay


class Middle(Random):
    """Chance that always takes the middle."""

    def uniform(self, a: float, b: float) -> float:
        return (a + b) / 2


@pytest.mark.parametrize(("failures", "seconds"), [(1, 0.5), (2, 1.0), (3, 2.0), (6, 16.0), (7, 30.0), (5000, 30.0)])
def test_the_delay_doubles_up_to_a_cap(failures: int, seconds: float) -> None:
    assert restart_delay(failures, Middle()) == seconds


def test_the_delay_is_spread_by_a_quarter() -> None:
    rng = Random(7)
    delays = [restart_delay(2, rng) for _ in range(200)]
    assert 0.75 <= min(delays) < 0.8
    assert 1.2 < max(delays) <= 1.25


def test_a_component_that_was_well_for_a_while_begins_anew() -> None:
    assert failures_in_a_row(6, 29.9) == 7
    assert failures_in_a_row(6, 30.0) == 1
