"""Trigger rules: from the states of a task's upstreams to what becomes of it. One small function each.

A rule may decide before every upstream has ended: one failure is enough for ``all_success``. What the rules say
is what Airflow 3.3.2 was seen to do; the order of the checks is part of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

Decision = str
RUN: Final = "run"
WAIT: Final = "wait"
SKIP: Final = "skip"
UPSTREAM_FAIL: Final = "upstream_fail"


class Counts(NamedTuple):
    """Upstream instances by state. Removed ones are left out; ``total`` includes those that have not ended."""

    total: int
    success: int = 0
    failed: int = 0
    upstream_failed: int = 0
    skipped: int = 0
    #: how many of ``total`` are setups, and of these succeeded or were skipped
    setups: int = 0
    setups_success: int = 0
    setups_skipped: int = 0

    @property
    def done(self) -> int:
        return self.success + self.failed + self.upstream_failed + self.skipped

    @property
    def bad(self) -> int:
        """Failed, by themselves or through their upstreams."""
        return self.failed + self.upstream_failed


def all_success(c: Counts) -> Decision:
    if c.failed or c.upstream_failed:
        return UPSTREAM_FAIL
    if c.skipped:
        return SKIP
    return RUN if c.success >= c.total else WAIT


def all_failed(c: Counts) -> Decision:
    if c.success or c.skipped:
        return SKIP
    return RUN if c.bad >= c.total else WAIT


def all_done(c: Counts) -> Decision:
    return RUN if c.done >= c.total else WAIT


def all_done_min_one_success(c: Counts) -> Decision:
    if c.skipped:
        return SKIP
    if c.done < c.total:
        return WAIT
    return RUN if c.success else UPSTREAM_FAIL


def all_done_setup_success(c: Counts) -> Decision:
    if c.done < c.total:
        return WAIT
    if not c.setups or c.setups_success:
        return RUN
    return SKIP if c.setups_skipped >= c.setups else UPSTREAM_FAIL


def all_skipped(c: Counts) -> Decision:
    if c.success or c.bad:
        return SKIP
    return RUN if c.skipped >= c.total else WAIT


def one_success(c: Counts) -> Decision:
    if c.success:
        return RUN
    if c.done < c.total:
        return WAIT
    return SKIP if c.done == c.skipped else UPSTREAM_FAIL


def one_failed(c: Counts) -> Decision:
    if c.bad:
        return RUN
    return SKIP if c.done >= c.total else WAIT


def one_done(c: Counts) -> Decision:
    if c.success or c.failed:
        return RUN
    return SKIP if c.done >= c.total else WAIT


def none_failed(c: Counts) -> Decision:
    if c.bad:
        return UPSTREAM_FAIL
    return RUN if c.done >= c.total else WAIT


def none_failed_min_one_success(c: Counts) -> Decision:
    if c.bad:
        return UPSTREAM_FAIL
    if c.done < c.total:
        return WAIT
    return SKIP if c.skipped == c.total else RUN


def none_skipped(c: Counts) -> Decision:
    if c.skipped:
        return SKIP
    return RUN if c.done >= c.total else WAIT


def always(c: Counts) -> Decision:
    return RUN


#: The names are those of Airflow's ``trigger_rule``.
RULES: Final[dict[str, Callable[[Counts], Decision]]] = {
    "all_success": all_success,
    "all_failed": all_failed,
    "all_done": all_done,
    "all_done_min_one_success": all_done_min_one_success,
    "all_done_setup_success": all_done_setup_success,
    "all_skipped": all_skipped,
    "one_success": one_success,
    "one_failed": one_failed,
    "one_done": one_done,
    "none_failed": none_failed,
    "none_failed_min_one_success": none_failed_min_one_success,
    "none_skipped": none_skipped,
    "always": always,
}

#: What each rule asks of the upstreams, for the sentence that explains a wait.
NEEDS: Final[dict[str, str]] = {
    "all_success": "every upstream to succeed",
    "all_failed": "every upstream to fail",
    "all_done": "every upstream to end",
    "all_done_min_one_success": "every upstream to end without a skip, one of them in success",
    "all_done_setup_success": "every upstream to end and one of its setups to succeed",
    "all_skipped": "every upstream to be skipped",
    "one_success": "one upstream to succeed",
    "one_failed": "one upstream to fail",
    "one_done": "one upstream to succeed or fail",
    "none_failed": "every upstream to end without a failure",
    "none_failed_min_one_success": "every upstream to end without a failure, one of them in success",
    "none_skipped": "every upstream to end without a skip",
    "always": "nothing of the upstreams",
}
