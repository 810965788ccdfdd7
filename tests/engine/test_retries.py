"""What a failed try becomes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_app.engine.dag import Task
from scheduler_app.engine.retries import MAX_BACKOFF, Fail, Retry, after_failure, delay_seconds
from tests.engine.scenario import NOW

TASK = Task("a", retries=2, retry_delay=10.0)


def test_it_retries_while_tries_are_left() -> None:
    assert after_failure(TASK, 1, 2, NOW) == Retry(NOW + timedelta(seconds=10))
    assert after_failure(TASK, 2, 2, NOW) == Retry(NOW + timedelta(seconds=10))
    assert after_failure(TASK, 3, 2, NOW) == Fail("Try 3 of 3 failed; no try is left.")


def test_the_instances_own_limit_counts_which_clearing_raises() -> None:
    assert after_failure(TASK, 4, 5, NOW) == Retry(NOW + timedelta(seconds=10))


def test_an_attempt_may_forbid_or_time_its_next_try() -> None:
    assert after_failure(TASK, 1, 2, NOW, retry_allowed=False) == Fail("It failed and asked for no further try.")
    assert after_failure(TASK, 1, 2, NOW, retry_delay=3) == Retry(NOW + timedelta(seconds=3))


@pytest.mark.parametrize(("number", "low"), [(1, 10), (2, 20), (3, 40)])
def test_back_off_doubles_and_spreads_up_to_the_double(number: int, low: int) -> None:
    task = Task("a", retry_delay=10.0, retry_exponential_backoff=2.0)
    delays = {delay_seconds(task, number, f"key {n}") for n in range(200)}
    assert low <= min(delays) < low * 1.2
    assert low * 1.8 < max(delays) < low * 2


def test_the_same_key_and_try_give_the_same_delay() -> None:
    task = Task("a", retry_delay=600.0, retry_exponential_backoff=2.0)
    assert delay_seconds(task, 2, "k") == delay_seconds(task, 2, "k") != delay_seconds(task, 2, "other")


def test_max_retry_delay_caps_and_a_zero_delay_backs_off_from_a_second() -> None:
    capped = Task("a", retry_delay=10.0, retry_exponential_backoff=2.0, max_retry_delay=15.0)
    assert delay_seconds(capped, 8) == 15.0
    assert delay_seconds(Task("a", retry_delay=0.0, retry_exponential_backoff=2.0), 1) == 1.0


@given(st.floats(0, 1e12), st.floats(0.1, 100), st.integers(1, 10_000))
def test_no_delay_factor_or_try_overflows(delay: float, factor: float, number: int) -> None:
    task = Task("a", retry_delay=delay, retry_exponential_backoff=factor)
    assert 1 <= delay_seconds(task, number) <= MAX_BACKOFF


def test_a_delay_beyond_the_calendar_fails_with_a_reason() -> None:
    ended = after_failure(Task("a", retry_delay=1e14), 1, 2, NOW)
    assert ended == Fail("Its retry delay of 1e+14 seconds reaches beyond the calendar: make it shorter.")
