"""One pass of the loop, as the phases see it: the time, who we are, what we may use."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from scheduler_app.conf import Conf
from scheduler_app.executors.base import Executor, HandOut
from scheduler_app.models.prepared import FEW

#: Of an error text what a row keeps (characters).
ERROR_LENGTH = 2000
#: First and longest time for which a row that raised is left alone; it doubles from one to the other (I5).
BACKOFF_FIRST_SECONDS = 5.0
BACKOFF_LONGEST_SECONDS = 600.0


class Queued(NamedTuple):
    """A hand-out that was queued in this pass, and the executor that its task names."""

    executor: str | None
    hand_out: HandOut


@dataclass(slots=True)
class Tick:
    """What a phase is given. It changes nothing here but what is said to be set by a phase."""

    now: datetime
    #: primary key of our Job row
    job_id: int
    conf: Conf
    executors: Mapping[str, Executor]
    rng: random.Random
    #: at most so many rows are taken by a phase; halved while a batch fails
    limit: int
    #: keys of the rows that the phase has taken, oldest first: the first is the culprit when it fails alone
    working_on: list[Any] = field(default_factory=list)
    #: set by a phase that knows when time alone gives it work again: the loop does not sleep longer
    due_at: datetime | None = None
    #: set by a phase that could not get a lock which it needs: the loop comes back soon
    again: bool = False
    #: this phase and the one that joins it share a transaction
    shares: bool = False
    #: set by a look that shares: task instances that it found ready and leaves to the admission, which writes them down
    ready: list[int] = field(default_factory=list)
    #: ``max_active_tasks`` of the runs of those, which are locked: running, and neither paused nor held
    open_runs: dict[int, int] = field(default_factory=dict)
    #: set by an admission: what it queued, for ``publish`` once that is committed
    queued: list[Queued] = field(default_factory=list)

    def admission_writes(self, count: int) -> bool:
        """Whether a look leaves so many ready task instances to the admission: one that runs in its transaction and
        takes rows that are not written. With ageing it reads them by their priority instead."""
        return self.shares and max(count, len(self.working_on)) <= FEW and not self.conf.priority_ageing_seconds

    def forget(self) -> None:
        """What was left to a later phase is not there: its transaction was taken back."""
        self.ready, self.open_runs, self.queued = [], {}, []

    @property
    def default_executor(self) -> Executor:
        return next(iter(self.executors.values()))

    def executor(self, name: str | None) -> Executor:
        """The executor of that name, or the first one for None or a name that we do not run."""
        return self.executors.get(name or "", self.default_executor)


def backoff(failures: int, now: datetime, rng: random.Random) -> datetime:
    """Until when a row that has failed so many times in a row is left alone (with a jitter of a fifth)."""
    seconds = min(BACKOFF_LONGEST_SECONDS, BACKOFF_FIRST_SECONDS * 2.0 ** min(failures, 20))
    return now + timedelta(seconds=seconds * rng.uniform(0.8, 1.2))


def error_text(error: BaseException) -> str:
    """An error as a row keeps it: type and message, cut, without what no row can hold."""
    return f"{type(error).__name__}: {error}".replace("\0", "")[:ERROR_LENGTH]
