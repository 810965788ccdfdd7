"""The local executor: one runner process on this machine, started again whenever it dies."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scheduler_app.conf import Conf
from scheduler_app.executors.base import Executor, HandOut, Lost
from scheduler_app.supervisor.base import Exit
from scheduler_app.wire import Channel

log = logging.getLogger(__name__)

PROGRAM = "scheduler_app.runner.process"
_PACKAGE_PARENT = Path(__file__).resolve().parent.parent.parent
_FIRST_BACKOFF_SECONDS = 0.2
_LONGEST_BACKOFF_SECONDS = 30.0
#: After the drain the runner has this long to stop what is left.
_STOP_SECONDS = 10.0


class LocalExecutor(Executor):
    """``parallelism`` slots. Hand-outs of a runner that died are told as lost at once."""

    name = "LocalExecutor"

    def __init__(self, values: Conf, slots: int | None = None, runner_arguments: Sequence[str] = ()) -> None:
        self._slots = values.parallelism if slots is None else slots
        self._runner_arguments = list(runner_arguments)
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        #: handed out and not done
        self._open: set[tuple[int, int]] = set()
        #: no slot was free at some time since the loop was last told of one
        self._was_full = False
        self._lost: list[Lost] = []
        self._runner_job_id: int | None = None
        self._failures = 0
        self._retry_at = 0.0
        self._stopped = True

    def start(self, job_id: int) -> None:
        if self._stopped:
            self._stopped = False
            self._spawn()

    def slots_available(self) -> int:
        self._listen()
        free = self._free()
        self._was_full |= free == 0
        return free

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        self._listen()
        if self._channel is None:
            return list(batch)
        known = [hand_out for hand_out in batch if _key(hand_out) in self._open]
        fresh = [hand_out for hand_out in batch if _key(hand_out) not in self._open]
        taken = fresh[: max(0, self._slots - len(self._open))]
        if taken:
            self._send({"op": "accept", "hand_outs": [list(_key(hand_out)) for hand_out in taken]})
        self._open.update(map(_key, taken))
        self._was_full |= self._free() == 0
        accepted = {*known, *taken}
        return [hand_out for hand_out in batch if hand_out not in accepted]

    def knows(self, hand_out: HandOut) -> bool:
        return _key(hand_out) in self._open

    def lost(self) -> list[Lost]:
        self._listen()
        lost, self._lost = self._lost, []
        return lost

    def cancel(self, batch: Sequence[HandOut]) -> None:
        if self._channel is not None:
            self._send({"op": "cancel", "hand_outs": [list(_key(hand_out)) for hand_out in batch]})

    def fileno(self) -> int | None:
        return None if self._channel is None else self._channel.fileno()

    def has_news(self) -> bool:
        """A loss, or a slot where there was none since this was last so. A begin is no news, nor one more free slot."""
        self._listen()
        if self._was_full and self._free() > 0:
            self._was_full = False
            return True
        return bool(self._lost) or self._channel is None

    def _free(self) -> int:
        return 0 if self._channel is None else max(0, self._slots - len(self._open))

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "slots": self._slots,
            "occupied": len(self._open),
            "runner_pid": self._process.pid if self._process else None,
            "runner_job_id": self._runner_job_id,
        }

    def stop(self, drain_seconds: float) -> None:
        self._stopped = True
        if self._process is None or self._channel is None:
            return
        self._send({"op": "stop", "drain_seconds": drain_seconds})
        # Without the runner's reader a full socket would hold it up: listen until it ends.
        deadline = time.monotonic() + drain_seconds + _STOP_SECONDS
        while self._channel is not None and time.monotonic() < deadline and self._process.poll() is None:
            time.sleep(0.02)
            self._listen()
        self._bury("the executor was stopped")

    def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", PROGRAM, "--control", str(theirs.fileno()), "--slots", str(self._slots)]
        command += ["--parent", str(os.getpid())]
        self._process = subprocess.Popen(
            [*command, *self._runner_arguments],
            cwd=_PACKAGE_PARENT,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            # Whoever kills our process group must not take it along: it has last words to write.
            start_new_session=True,
        )
        theirs.close()
        self._channel = Channel(ours)
        log.info("The runner of the local executor has pid %s", self._process.pid)

    def _send(self, message: dict[str, Any]) -> None:
        if self._channel is not None:
            self._channel.send(message)

    def _listen(self) -> None:
        """Take in what the runner said; notice its death, and start another one after a back-off."""
        if self._channel is not None:
            self._channel.flush()
            for message in self._channel.receive():
                self._heard(message)
            if self._channel.closed:
                self._bury("the runner, which watches over all tasks of an executor, died")
        if self._channel is None and not self._stopped and time.monotonic() >= self._retry_at:
            self._spawn()

    def _heard(self, message: dict[str, Any]) -> None:
        if message["op"] == "ready":
            self._runner_job_id, self._failures = message["job_id"], 0
            return
        keys = [(ti_id, fence) for ti_id, fence in message["hand_outs"]]
        if message["op"] == "begun":
            self.begun(keys)
            return
        self._open.difference_update(keys)
        self.done(keys)

    def begun(self, keys: Sequence[tuple[int, int]]) -> None:
        """The runner has claimed these."""

    def done(self, keys: Sequence[tuple[int, int]]) -> None:
        """The runner has nothing more to do for these."""

    def _bury(self, why: str) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_STOP_SECONDS if self._stopped else 2.0)
            if self._process.poll() is None:
                self._process.kill()
                self._process.wait()
            why = f"{why} (pid {self._process.pid}): {Exit(self._process.returncode).text}"
            self._process = None
        self._lost += [Lost(ti_id, fence, why[:1].upper() + why[1:] + ".") for ti_id, fence in sorted(self._open)]
        self._open.clear()
        self._runner_job_id = None
        pause = min(_LONGEST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2.0**self._failures)
        self._failures += 1
        self._retry_at = time.monotonic() + pause
        if not self._stopped:
            log.warning("%s; it is started again in %.1f s", why, pause)


def _key(hand_out: HandOut) -> tuple[int, int]:
    return hand_out.ti_id, hand_out.fence


def _environment() -> dict[str, str]:
    """Ours, whole: the runner has the database. The settings module may have been chosen in code."""
    from django.conf import ENVIRONMENT_VARIABLE, settings

    name = getattr(settings, "SETTINGS_MODULE", None)
    return {**os.environ, ENVIRONMENT_VARIABLE: name} if name else dict(os.environ)
