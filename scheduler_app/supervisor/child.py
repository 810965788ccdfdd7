"""One attempt's process, seen from our side: its wire, its raw output, its log and its end."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from scheduler_app import attempt_log
from scheduler_app.attempt_log import LogWriter, RawLines
from scheduler_app.supervisor.base import Exit
from scheduler_app.supervisor.events import Events
from scheduler_app.wire import Channel, FrameTooLarge, Json

log = logging.getLogger(__name__)


class Watcher(Protocol):
    """Who looks after a child. ``ended`` is called exactly once, after the last message."""

    def message(self, child: Child, message: dict[str, Any]) -> None: ...

    def ended(self, child: Child, exit: Exit) -> None: ...


@dataclass(frozen=True, slots=True)
class Clocks:
    """The two clocks of a process's edge: `monotonic` in seconds for durations, `wall` for what is written."""

    monotonic: Callable[[], float]
    wall: Callable[[], Any]


class Child:
    """``signal`` and ``pid`` work once its zygote has forked it; before that a stop is remembered."""

    def __init__(self, events: Events, log_file: Path, max_bytes: int, clocks: Clocks, watcher: Watcher) -> None:
        """Raises OSError when the log cannot be opened, or nothing can (too many open files); then nothing is left."""
        self._events, self._watcher = events, watcher
        self.log = LogWriter(-1, clocks.wall)
        self.pid: int | None = None
        self.done = False
        self.started_at = clocks.monotonic()
        #: SIGTERM was sent; when SIGKILL follows, by the monotonic clock
        self.kill_at: float | None = None
        self.kills = 0
        self._send_signal: Callable[[int], None] | None = None
        self._early_signal: int | None = None
        ours, theirs = socket.socketpair()
        self._wire = Channel(ours, max_bytes)
        self._pipes: dict[int, RawLines] = {}
        self.fds = {"wire": theirs.detach()}
        try:
            self._open(log_file)
        except BaseException:
            self.abandon()
            raise
        events.watch(self._wire, self._message, self._wire_closed)

    def _open(self, log_file: Path) -> None:
        self.log.fd = attempt_log.open_for_append(log_file)
        self.fds["log"] = os.dup(self.log.fd)
        for name, level, logger in (("out", "info", "task.stdout"), ("err", "error", "task.stderr")):
            read, self.fds[name] = os.pipe()
            self._pipes[read] = RawLines(self.log, level, logger)
            self._events.watch_pipe(read, lambda data, read=read: self._raw(read, data))

    def send(self, message: Json) -> None:
        """Raises FrameTooLarge. A child that is gone is told nothing."""
        if not self._wire.closed:
            self._events.send(self._wire, message)

    def answer(self, request: dict[str, Any], *, ok: Json = None, error: dict[str, str] | None = None) -> None:
        """The answer to a request; an answer that is too large becomes an error."""
        reply = {"id": request["id"], "error": error} if error else {"id": request["id"], "ok": ok}
        try:
            self.send(reply)
        except FrameTooLarge as large:
            self.send({"id": request["id"], "error": {"type": "FrameTooLarge", "message": str(large)}})

    def stop(self, monotonic: float, grace_seconds: float) -> None:
        """Ask it to stop (SIGTERM); when `grace_seconds` are over, :meth:`Children.tick` kills its tree."""
        if self.kill_at is None:
            self.kill_at = monotonic + grace_seconds
            self.signal(signal.SIGTERM)

    def linger(self, until: float) -> None:
        """It has nothing more to do: its tree is killed when it is not gone by then (monotonic)."""
        if self.kill_at is None:
            self.kill_at = until

    def signal(self, number: int) -> None:
        if self._send_signal is None:
            self._early_signal = number
        elif not self.done:
            self._send_signal(number)

    def forked(self, pid: int, send_signal: Callable[[int], None]) -> None:
        self.pid, self._send_signal = pid, send_signal
        if self._early_signal is not None:
            send_signal(self._early_signal)

    def exited(self, exit: Exit) -> None:
        """Its process is gone: read what is left in the pipes, then tell the watcher."""
        if self.done:
            return
        self._drain()
        self.done = True
        self._close()
        self._watcher.ended(self, exit)

    def _message(self, message: dict[str, Any]) -> None:
        try:
            if message.get("op") == "mask_secret":
                self.log.masks.add(message["value"])
            if not self.done:
                self._watcher.message(self, message)
        except Exception:
            # Only a process that writes to its socket itself sends what nobody understands.
            log.exception("A message of the process %s is not understood", self.pid)
            self.log.write("error", "task", "The task's process sent a message that is not understood; it is ended.")
            self.signal(signal.SIGKILL)

    def _wire_closed(self, why: str) -> None:
        if why and not self.done:
            self.log.write("error", "task", f"The task's connection broke: {why}")
            self.signal(signal.SIGKILL)

    def _raw(self, read: int, data: bytes) -> None:
        if data:
            self._pipes[read].feed(data)
        else:
            self._pipes.pop(read).finish()

    def _drain(self) -> None:
        if not self._wire.closed:
            for message in self._wire.receive():
                self._message(message)
        for read, lines in self._pipes.items():
            while data := _read_now(read):
                lines.feed(data)
            lines.finish()

    def _close(self) -> None:
        self._events.forget(self._wire)
        self._wire.close()
        for read in self._pipes:
            self._events.forget(read)
            os.close(read)
        self._pipes.clear()
        for fd in self.fds.values():
            os.close(fd)
        self.fds = {}

    def take_fds(self) -> dict[str, int]:
        """The child's ends; they belong to the caller now."""
        fds, self.fds = self.fds, {}
        return fds

    def abandon(self) -> None:
        """It never started: close everything, tell nobody."""
        self.done = True
        self._close()
        self.close_log()

    def close_log(self) -> None:
        """The last act: no line can follow."""
        if self.log.fd >= 0:
            os.close(self.log.fd)
            self.log.fd = -1


def _read_now(fd: int) -> bytes:
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""
