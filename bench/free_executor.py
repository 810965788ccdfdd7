"""An executor whose attempts cost nothing: it claims and reports with the runner's own statements, in batches."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scheduler_app.executors.base import Executor, HandOut, Lost
from scheduler_app.runner import claims, outcomes

SUCCESS = {"op": "outcome", "state": "success"}


class FreeExecutor(Executor):
    name = "FreeExecutor"

    def __init__(self, slots: int = 1_000_000) -> None:
        self.slots = slots
        self.waiting: list[HandOut] = []
        self._known: set[HandOut] = set()
        self.worker = claims.Worker(0, "bench", "bench")

    def start(self, job_id: int) -> None:
        self.worker = claims.Worker(job_id, "bench", "bench")

    def slots_available(self) -> int:
        return self.slots - len(self.waiting)

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        self.waiting += batch
        self._known.update(batch)
        return []

    def knows(self, hand_out: HandOut) -> bool:
        return hand_out in self._known

    def drain(self, now: datetime, most: int = 1_000_000) -> int:
        """Runs what is waiting to its successful end, at most so many; returns how many."""
        batch, self.waiting = self.waiting[:most], self.waiting[most:]
        self._known.difference_update(batch)
        for at in range(0, len(batch), outcomes.BATCH):
            part = batch[at : at + outcomes.BATCH]
            claimed = claims.claim([h.ti_id for h in part], [h.fence for h in part], now, self.worker)
            outcomes.write([outcomes.Report(claim, SUCCESS) for claim in claimed], now)
        return len(batch)

    def lost(self) -> list[Lost]:
        return []

    def cancel(self, batch: Sequence[HandOut]) -> None:
        gone = set(batch)
        self.waiting = [hand_out for hand_out in self.waiting if hand_out not in gone]

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "waiting": len(self.waiting)}

    def stop(self, drain_seconds: float) -> None:
        self.waiting.clear()
