"""An executor whose attempts cost nothing but time, so that the load is the scheduler's: one thread, one connection.

It claims and reports by the runner's own statements and lives in its scheduler's process: who kills one kills both.
"""

from __future__ import annotations

import contextlib
import os
import random
import threading
import time
import traceback
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scheduler_app.executors.base import Executor, HandOut, Lost
from scheduler_app.models import db
from scheduler_app.runner import claims, heartbeats, outcomes
from scheduler_app.runner.buffers import Buffer, Owner
from scheduler_app.runner.database import Database, DatabaseAway

SUCCESS: dict[str, Any] = {"op": "outcome", "state": "success"}
FAILURE: dict[str, Any] = {"op": "outcome", "state": "failed", "error": {"type": "Oops", "message": "by chance"}}
#: Of all attempts so many fail, and are tried again.
FAIL = 0.05
#: Longest time that an attempt holds its slots.
HOLD_SECONDS = 0.15
BEAT_SECONDS = 0.5

Key = tuple[int, int]


class FreeExecutor(Executor):
    name = "FreeExecutor"

    def __init__(self, slots: int, ledger: int, rng: random.Random) -> None:
        #: `ledger`: descriptor of a file opened for appending
        self._slots, self._ledger, self._rng = slots, ledger, rng
        self._database = Database(time.monotonic)
        self._changed = threading.Condition()
        self._waiting: list[Key] = []
        #: begun and not written yet → when it is over
        self._running: dict[Key, tuple[float, outcomes.Report]] = {}
        self._stopping = False
        self._next_beat = 0.0
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._worker = claims.Worker(0, "siege", "siege")
        self._thread = threading.Thread(target=self._serve, name="attempts", daemon=True)

    def start(self, job_id: int) -> None:
        self._worker = claims.Worker(job_id, "siege", "siege")
        if not self._thread.is_alive():
            self._thread.start()

    def slots_available(self) -> int:
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 4096)
        with self._changed:
            return self._slots - len(self._waiting) - len(self._running)

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        with self._changed:
            self._waiting += [(one.ti_id, one.fence) for one in batch if not self.knows(one)]
            if len(self._waiting) + len(self._running) > self._slots:
                self._say("over", (len(self._waiting) + len(self._running), self._slots))
            self._changed.notify()
        return []

    def knows(self, hand_out: HandOut) -> bool:
        key = (hand_out.ti_id, hand_out.fence)
        return key in self._waiting or key in self._running

    def lost(self) -> list[Lost]:
        return []

    def cancel(self, batch: Sequence[HandOut]) -> None:
        return None

    def fileno(self) -> int:
        return self._read

    def describe(self) -> dict[str, Any]:
        return {"name": self.name, "slots": self._slots, "running": len(self._running)}

    def stop(self, drain_seconds: float) -> None:
        with self._changed:
            self._stopping = True
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join()

    # ── the thread ───────────────────────────────────────────────────────────────────────────────────────────────────
    def _serve(self) -> None:
        try:
            self._go_on()
        except BaseException:
            # a runner survives whatever the database does: one that does not takes its scheduler along, to be counted
            traceback.print_exc()
            os._exit(3)

    def _go_on(self) -> None:
        while not self._stopping:
            self._database.next_pass()
            with contextlib.suppress(DatabaseAway):
                self._claim()
                self._report()
                self._beat()
            with self._changed:
                if not self._waiting and not self._stopping:
                    self._changed.wait(0.02)
        db.close()

    def _claim(self) -> None:
        with self._changed:
            keys = self._waiting[: outcomes.BATCH]
        if not keys:
            return
        ids, fences = [key[0] for key in keys], [key[1] for key in keys]
        held = self._database.do(lambda now: claims.claim(ids, fences, now, self._worker))
        for claim in held:
            self._say("begin", (claim.ti_id, claim.fence))
        with self._changed:
            self._waiting = [key for key in self._waiting if key not in set(keys)]
            for claim in held:
                ends = FAILURE if self._rng.random() < FAIL else SUCCESS
                until = time.monotonic() + self._rng.uniform(0, HOLD_SECONDS)
                self._running[claim.ti_id, claim.fence] = (until, outcomes.Report(claim, ends))
        if len(held) < len(keys):
            self._ring()

    def _report(self) -> None:
        due = [key for key, (until, _) in self._running.items() if until <= time.monotonic()]
        if due:
            reports = [self._running[key][1] for key in due]
            self._database.do(lambda now: outcomes.write(reports, now))
            with self._changed:
                for key in due:
                    del self._running[key]
            self._ring()

    def _beat(self) -> None:
        if time.monotonic() >= self._next_beat:
            self._next_beat = time.monotonic() + BEAT_SECONDS
            claimed = [report.claim for _, report in self._running.values()]
            beats = [heartbeats.Beat(_owner(claim), claim.fence, os.getpid(), Buffer()) for claim in claimed]
            self._database.do(lambda now: _send(beats, now))

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def _say(self, what: str, numbers: Key) -> None:
        os.write(self._ledger, f"{what} {numbers[0]} {numbers[1]}\n".encode())


def _send(beats: Sequence[heartbeats.Beat], now: datetime) -> None:
    heartbeats.beat(beats, now)


def _owner(claim: claims.Claim) -> Owner:
    return Owner(claim.ti_id, claim.run_pk, claim.dag_id, claim.task_id, claim.map_index)
