"""What a failed attempt becomes: another try at some instant, or the end."""

from __future__ import annotations

import hashlib
import math
from datetime import datetime, timedelta
from typing import Final, Literal, NamedTuple

from scheduler_app.engine.dag import Task

#: Which tasks begin again when a shutdown of ours interrupted them: those that have retries, all, or none (it counts as
#: a failed try).
Interrupted = Literal["with_retries", "all", "none"]
#: The longest delay that exponential back-off makes by itself, seconds.
MAX_BACKOFF: Final = 24 * 60 * 60


class Retry(NamedTuple):
    at: datetime


class Fail(NamedTuple):
    reason: str


def instance_key(run_key: int, task_id: str, map_index: int) -> str:
    """The ``jitter_key`` of an instance, the same whoever judges its failure; ``run_key``: its run's primary key."""
    return f"{run_key}/{task_id}/{map_index}"


def after_failure(
    task: Task,
    try_number: int,
    max_tries: int,
    ended_at: datetime,
    *,
    retry_allowed: bool = True,
    jitter_key: str = "",
    retry_delay: float | None = None,
) -> Retry | Fail:
    """What becomes of try ``try_number`` (1 = the first), which failed at ``ended_at``.

    ``max_tries`` is the instance's (clearing raises it), not the task's. ``retry_allowed`` false: the attempt itself
    said that another try is useless. ``jitter_key`` (:func:`instance_key`) names the instance: the same key and try
    give the same instant. ``retry_delay`` (seconds) is what the attempt asked for; it takes the place of the task's
    delay and back-off.
    """
    if not retry_allowed:
        return Fail("It failed and asked for no further try.")
    if try_number > max_tries:
        return Fail(f"Try {try_number} of {max_tries + 1} failed; no try is left.")
    seconds = delay_seconds(task, try_number, jitter_key) if retry_delay is None else max(0.0, retry_delay)
    try:
        return Retry(ended_at + timedelta(seconds=seconds))
    except OverflowError:
        return Fail(f"Its retry delay of {seconds:g} seconds reaches beyond the calendar: make it shorter.")


def begins_again(task: Task | None, rule: Interrupted) -> bool:
    """Whether a task that a shutdown of ours interrupted begins again, on a try more than it has.

    Its author, who gave it retries, says with them that it may run twice. ``task`` None: it has left its DAG.
    """
    return task is not None and (rule == "all" or (rule == "with_retries" and task.retries > 0))


def cleared(told: str | None) -> str:
    """The reason of a try that ended because somebody cleared it; `told`: what the row says of that, if anything."""
    return f"It was {told or 'cleared'} while it ran."


def delay_seconds(task: Task, try_number: int, jitter_key: str = "") -> float:
    """Seconds between the end of a failed try and the next one.

    With back-off: ``base = retry_delay × factor ** (try - 1)``, spread by the key over ``[base, 2 × base)`` so that
    tasks that failed together do not come back together, at most a day; ``max_retry_delay`` caps the result.
    """
    delay = max(0.0, task.retry_delay)
    if task.retry_exponential_backoff:
        base = _power(delay, task.retry_exponential_backoff, try_number - 1)
        digest = hashlib.sha1(f"{jitter_key}#{try_number}".encode(), usedforsecurity=False).hexdigest()
        delay = float(min(base + int(digest, 16) % base, MAX_BACKOFF))
    if task.max_retry_delay is not None:
        delay = min(delay, task.max_retry_delay)
    return delay


def _power(delay: float, factor: float, exponent: int) -> int:
    """``delay × factor ** exponent`` rounded up, in [1, MAX_BACKOFF]."""
    try:
        return max(1, min(math.ceil(delay * factor**exponent), MAX_BACKOFF))
    except OverflowError:
        return MAX_BACKOFF
