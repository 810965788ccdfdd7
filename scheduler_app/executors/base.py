"""The contract of an executor (design decision 7): it takes hand-outs and says which processes are gone. Nothing else.

It never sets a state. The attempt's outcome is written by the runner, under the fence; an executor that loses a
process says so, and the scheduler decides what that means for the row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class HandOut:
    """One start of a try: the task instance's id and the fence that lets only this start act. These two make it what it
    is; the rest goes along."""

    ti_id: int
    fence: int
    dag_id: str = field(default="", compare=False)
    queue: str = field(default="default", compare=False)
    priority: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Lost:
    """A hand-out whose process is gone, and why, in words. Whether it had begun, the row's state tells."""

    ti_id: int
    fence: int
    reason: str


class Executor(ABC):
    """One executor of one scheduler process. Called from the scheduler's main thread alone; no call may block."""

    #: the name that a task's ``executor`` argument and the settings use
    name: str

    @abstractmethod
    def start(self, job_id: int) -> None:
        """Begin work; `job_id` is the scheduler's own Job row. Called again when the scheduler goes on as another job,
        because it lost its lease: what runs goes on."""

    @abstractmethod
    def slots_available(self) -> int:
        """Hand-outs that it would take right now, across all queues."""

    @abstractmethod
    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        """Take hand-outs, best first; those that it does not take come back. Taking one twice is no error."""

    def knows(self, hand_out: HandOut) -> bool:
        """Whether it took this hand-out, keeps it in this process's memory and has not reported its end or loss."""
        return False

    @abstractmethod
    def lost(self) -> list[Lost]:
        """Hand-outs whose process is gone without a report; each is told once."""

    def adopt(self, batch: Sequence[HandOut]) -> list[HandOut]:
        """Hand-outs of a dead scheduler; returns those that it looks after from now on."""
        return []

    @abstractmethod
    def cancel(self, batch: Sequence[HandOut]) -> None:
        """Forget those that have not begun, stop those that have. What becomes of the row is the caller's matter."""

    def fileno(self) -> int | None:
        """A file that becomes readable when a slot is free again or a process is gone, to end the loop's sleep."""
        return None

    def has_news(self) -> bool:
        """When that file was readable: whether there is something for the loop to do, or only the executor's own."""
        return True

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What the health page and the Job row show: name, slots, processes."""

    @abstractmethod
    def stop(self, drain_seconds: float) -> None:
        """Take nothing more, give attempts so long to end, then stop them. No process is left when it returns."""
