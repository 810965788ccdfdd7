"""The thread that talks to the broker, so that a broker which hangs never holds up the scheduler's loop.

The loop *offers* hand-outs and looks later which of them the broker has confirmed. Sending one twice starts nothing
twice: the fence lets one start only.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Sequence
from typing import Any, Protocol

from scheduler_app.executors.base import HandOut

log = logging.getLogger(__name__)

Key = tuple[int, int]

_FIRST_BACKOFF_SECONDS = 0.2
_LONGEST_BACKOFF_SECONDS = 10.0
#: What was sent and never asked for again is forgotten after this: it began before the loop could look.
_FORGET_SECONDS = 30.0
_JOIN_SECONDS = 1.0


class Post(Protocol):
    """A connection to the broker. Every call ends within its own time-out, and raises when it did not work."""

    def send(self, hand_out: HandOut) -> None: ...

    def revoke(self, hand_outs: Sequence[HandOut]) -> None: ...

    def close(self) -> None: ...


class Publisher:
    """`most`: hand-outs that may wait for the broker; more are not taken."""

    def __init__(self, post: Post, most: int) -> None:
        self._post, self._most = post, most
        self._changed = threading.Condition()
        self._waiting: dict[Key, HandOut] = {}
        self._sent: dict[Key, float] = {}
        self._revoked: list[HandOut] = []
        self._error = ""
        self._failures = 0
        self._stopping = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._thread = threading.Thread(target=self._run, name="celery-publisher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def fileno(self) -> int:
        """Readable when the broker has confirmed something."""
        return self._read

    def offer(self, batch: Sequence[HandOut]) -> list[HandOut]:
        """Those of the batch that the broker has not confirmed yet; they are sent meanwhile."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._read, 4096)
        left = []
        with self._changed:
            for hand_out in batch:
                key = _key(hand_out)
                if self._sent.pop(key, None) is not None:
                    continue
                left.append(hand_out)
                if key not in self._waiting and len(self._waiting) < self._most:
                    self._waiting[key] = hand_out
            oldest = time.monotonic() - _FORGET_SECONDS
            self._sent = {key: at for key, at in self._sent.items() if at >= oldest}
            self._changed.notify()
        return left

    def revoke(self, batch: Sequence[HandOut]) -> None:
        with self._changed:
            for hand_out in batch:
                self._waiting.pop(_key(hand_out), None)
            self._revoked += batch
            self._changed.notify()

    def describe(self) -> dict[str, Any]:
        with self._changed:
            return {"unsent": len(self._waiting), "broker_error": self._error}

    def stop(self) -> None:
        """What was not sent stays in its row. A call that hangs is left to the end of the process."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(_JOIN_SECONDS)
        if not self._thread.is_alive():
            os.close(self._read)
            os.close(self._write)

    def _run(self) -> None:
        while not self._stopping:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._waiting or self._revoked)
                batch, revoked = list(self._waiting.values()), self._revoked
            if self._stopping:
                break
            try:
                self._deliver(batch, revoked)
            except Exception as error:
                # Whatever the driver raises: the rows stay where they are and are sent again.
                self._failed(error)
        self._close()

    def _deliver(self, batch: Sequence[HandOut], revoked: list[HandOut]) -> None:
        if revoked:
            self._post.revoke(revoked)
            with self._changed:
                del self._revoked[: len(revoked)]
        for hand_out in batch:
            with self._changed:
                if self._stopping:
                    return
                if _key(hand_out) not in self._waiting:
                    continue  # revoked meanwhile
            self._post.send(hand_out)
            with self._changed:
                self._waiting.pop(_key(hand_out), None)
                self._sent[_key(hand_out)] = time.monotonic()
                self._error, self._failures = "", 0
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def _failed(self, error: Exception) -> None:
        pause = min(_LONGEST_BACKOFF_SECONDS, _FIRST_BACKOFF_SECONDS * 2.0**self._failures) if self._failures else 0.0
        self._failures += 1
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        if pause:
            log.warning("The broker does not take hand-outs (%s); they wait, again in %.1f s", text, pause)
        self._close()
        with self._changed:
            self._error = text
            self._changed.wait_for(lambda: self._stopping, pause)

    def _close(self) -> None:
        with contextlib.suppress(Exception):
            self._post.close()


def _key(hand_out: HandOut) -> Key:
    return hand_out.ti_id, hand_out.fence
