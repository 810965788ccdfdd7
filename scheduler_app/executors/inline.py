"""For tests and commands that run one DAG: the runner in this process, driven by hand. Attempts are still children."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from scheduler_app.conf import Conf
from scheduler_app.executors.base import Executor, HandOut, Lost
from scheduler_app.models import db
from scheduler_app.runner import assemble
from scheduler_app.runner.identity import Identity
from scheduler_app.runner.loop import Runner
from scheduler_app.supervisor.events import Events


class InlineExecutor(Executor):
    """Call :meth:`drain` (or :meth:`step`) to let attempts go on."""

    name = "InlineExecutor"

    def __init__(self, values: Conf, slots: int | None = None) -> None:
        self._slots = values.parallelism if slots is None else slots
        self._open: set[tuple[int, int]] = set()
        self._events = Events()
        self.children = assemble.children(values, self._events)
        self._identity = Identity("LocalTaskJob", self.name, {"slots": self._slots})
        self.runner: Runner = assemble.runner(values, self._events, self.children, self._identity, self._slots, self)

    def start(self, job_id: int) -> None:
        self._identity.begin(db.clock())

    def slots_available(self) -> int:
        return max(0, self._slots - len(self._open))

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        taken = list(batch)[: self.slots_available()]
        keys = [(hand_out.ti_id, hand_out.fence) for hand_out in taken]
        self._open.update(keys)
        self.runner.accept(keys)
        return list(batch)[len(taken) :]

    def step(self, longest_seconds: float = 0.05) -> None:
        """One pass of the runner."""
        self.runner.step(longest_seconds)

    def drain(self, longest_seconds: float = 30.0) -> None:
        """Until nothing is handed out any more. Raises TimeoutError."""
        deadline = time.monotonic() + longest_seconds
        while not self.runner.idle:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"{len(self._open)} hand-outs are not done after {longest_seconds:g} s")
            self.step()

    def done(self, keys: Sequence[tuple[int, int]]) -> None:
        self._open.difference_update(keys)

    def begun(self, keys: Sequence[tuple[int, int]]) -> None:
        """Nobody else hands them out."""

    def lost(self) -> list[Lost]:
        return []

    def cancel(self, batch: Sequence[HandOut]) -> None:
        self.runner.cancel([(hand_out.ti_id, hand_out.fence) for hand_out in batch])

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "slots": self._slots, "occupied": len(self._open)}

    def stop(self, drain_seconds: float) -> None:
        self.children.stop()
        self._events.close()
        self._identity.end(db.clock())
