"""Starts components, restarts what dies, and stops all of it without leaving a process.

One thread and one selector: the output of the children, a wake-up socket for signals, and the next restart's time. It
forks, so nothing in this process may start a thread.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import psutil

from scheduler_app import proc

from .backoff import failures_in_a_row, restart_delay
from .output import Lines, Output

OWN_NAME = "standalone"
OWN_COLOUR = 37
#: A second signal this soon is the first one, sent to the process and to its group (as ``timeout`` does).
SAME_SIGNAL_SECONDS = 0.5
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Service:
    """Something to keep alive: ``launch`` starts it and returns its pid; ``lines`` is where it writes, if to us."""

    name: str
    colour: int
    launch: Callable[[], tuple[int, int | None]]
    #: Whether SIGTERM and SIGKILL come from us; the database ends after all others, by its own means.
    ours_to_stop: bool = True


@dataclass
class Child:
    service: Service
    pid: int
    started: float
    lines: Lines | None
    failures: int


class Supervisor:
    """``run`` returns when everything has stopped: 0, or 1 when something had to be killed."""

    def __init__(
        self,
        services: Sequence[Service],
        *,
        output: Output,
        clock: Callable[[], float],
        rng: Random,
        stop_seconds: float,
    ) -> None:
        self._services = services
        self._output = output
        self._clock = clock
        self._rng = rng
        self._stop_seconds = stop_seconds
        self._selector = selectors.DefaultSelector()
        self._children: dict[int, Child] = {}
        self._due: list[tuple[float, Service, int]] = []
        self._stop_at: float | None = None
        self._killed = False

    def run(self, running: Sequence[tuple[Service, int]] = ()) -> int:
        """Keeps the services alive until a stop signal. ``running`` were started before, with their pids."""
        proc.become_subreaper()
        wakeup = self._catch_signals()
        now = self._clock()
        for service, pid in running:
            self._children[pid] = Child(service, pid, now, None, 0)
        self._due = [(now, service, 0) for service in self._services]
        try:
            while self._goes_on():
                self._start_due()
                self._wait(wakeup)
                self._reap()
                self._enforce_deadline()
        finally:
            signal.set_wakeup_fd(-1)
            self._end_strays()
        return int(self._killed)

    def _goes_on(self) -> bool:
        waiting = self._stop_at is None and bool(self._due)
        return waiting or any(child.service.ours_to_stop for child in self._children.values())

    def say(self, text: str) -> None:
        self._output.line(OWN_NAME, OWN_COLOUR, text)

    # ── The loop's steps ─────────────────────────────────────────────────────────────────────────────────────────────

    def _start_due(self) -> None:
        now = self._clock()
        for entry in [entry for entry in self._due if entry[0] <= now]:
            self._due.remove(entry)
            _, service, failures = entry
            try:
                pid, descriptor = service.launch()
            except Exception as error:
                self._retry_later(service, failures + 1, f"{service.name} cannot be started: {error}")
                continue
            lines = None
            if descriptor is not None:
                lines = Lines(descriptor, self._output, service.name, service.colour)
                self._selector.register(descriptor, selectors.EVENT_READ, lines)
            self._children[pid] = Child(service, pid, now, lines, failures)

    def _wait(self, wakeup: socket.socket) -> None:
        moments = [entry[0] for entry in self._due]
        if self._stop_at is not None:
            moments.append(self._stop_at)
        timeout = max(0.0, min(moments) - self._clock()) if moments else None
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._take_signals(wakeup.recv(4096))
            elif not key.data.read():
                self._selector.unregister(key.fd)

    def _take_signals(self, numbers: bytes) -> None:
        for number in numbers:
            if number not in _STOP_SIGNALS:
                continue
            if self._stop_at is None:
                self.say(f"{signal.Signals(number).name}: stopping (again to kill)")
                self._stop_at = self._clock() + self._stop_seconds
                # The database is kept alive until the others have written what they must.
                self._due = [entry for entry in self._due if not entry[1].ours_to_stop]
                for child in reversed(self._children.values()):
                    if child.service.ours_to_stop:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(child.pid, signal.SIGTERM)
            elif self._clock() > self._stop_at - self._stop_seconds + SAME_SIGNAL_SECONDS:
                self._stop_at = self._clock()

    def _reap(self) -> None:
        """Takes the exit of every child, also of the orphans that a subreaper inherits."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                self._ended(child, os.waitstatus_to_exitcode(status))

    def _ended(self, child: Child, code: int) -> None:
        proc.signal_group(child.pid, signal.SIGKILL)  # what it left in its process group
        if child.lines is not None:
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(child.lines.descriptor)
            child.lines.close()
        how = f"ended with code {code}" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        if self._stop_at is not None and child.service.ours_to_stop:
            self.say(f"{child.service.name} {'stopped' if code == 0 else how}")
            return
        failures = failures_in_a_row(child.failures, self._clock() - child.started)
        self._retry_later(child.service, failures, f"{child.service.name} {how}")

    def _retry_later(self, service: Service, failures: int, what: str) -> None:
        delay = restart_delay(failures, self._rng)
        self.say(f"{what}; next start in {delay:.1f} s")
        self._due.append((self._clock() + delay, service, failures))

    def _enforce_deadline(self) -> None:
        if self._stop_at is None or self._clock() < self._stop_at:
            return
        for child in self._children.values():
            if child.service.ours_to_stop:
                self.say(f"{child.service.name} did not stop in time: killed")
                self._killed = True
                proc.signal_group(child.pid, signal.SIGKILL)
        self._stop_at = self._clock() + 1.0  # the kernel ends them; look again should one be stuck in a system call

    # ── Signals and strays ───────────────────────────────────────────────────────────────────────────────────────────

    def _catch_signals(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        self._wakeup = theirs  # kept: the number is all that the interpreter holds
        for number in (*_STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, _noted)
        self._selector.register(ours, selectors.EVENT_READ)
        return ours

    def _end_strays(self) -> None:
        """Kills descendants that outlived their component. They are our children since we are a subreaper."""
        kept = {pid for pid, child in self._children.items() if not child.service.ours_to_stop}
        while True:
            strays = [process for process in psutil.Process().children() if process.pid not in kept]
            if not strays:
                return
            for process in strays:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(strays, timeout=2)


def _noted(number: int, frame: Any) -> None:
    """The wake-up socket carries the number; the handler only keeps the default action away."""


def fork(name: str, function: Callable[[], Any]) -> tuple[int, int]:
    """Runs a function in a child of its own process group; its pid, and the read end of what it prints.

    The child dies with this process. Its exit code is 0, the function's int, SystemExit's, or 1 after a traceback.
    """
    read_end, write_end = os.pipe()
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        _child(name, function, parent, write_end)
    os.close(write_end)
    with contextlib.suppress(OSError):  # done on both sides: whoever is first
        os.setpgid(pid, pid)
    return pid, read_end


def _close_inherited(parent: int) -> None:
    """Closes what the parent has open, but for the metrics that it counts into (``counter_<pid>.db``).

    The metrics library closes those itself when it sees the fork; by then their numbers would be those of our sockets.
    """
    for fd in [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]:
        with contextlib.suppress(OSError):  # the one that listed the folder is closed already
            if not os.readlink(f"/proc/self/fd/{fd}").endswith(f"_{parent}.db"):
                os.close(fd)


def _child(name: str, function: Callable[[], Any], parent: int, write_end: int) -> None:
    code = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        proc.die_with_parent(parent)
        proc.set_name(name)
        signal.set_wakeup_fd(-1)
        for number in (*_STOP_SIGNALS, signal.SIGCHLD):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        _close_inherited(parent)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        result = function()
        code = result if isinstance(result, int) else 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
