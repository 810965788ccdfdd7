"""A single-threaded process that forks children on request and knows, until they are reaped, which are its own.

Two programs are made of it: the *base*, which has imported the SDK and no user code, and the *zygote* of one DAG
file, which has imported that file. Both are subreapers. When the process that started them is gone (the
lifeline pipe ends, or the control socket does) they end every descendant and then themselves.

Control messages (``scheduler_app.wire``): ``{"op": "fork", "key", "role", "fds": [names…], …}`` with the file
descriptors attached, ``{"op": "signal", "key", "signal"}`` (SIGKILL takes the child's whole tree), ``{"op": "stop"}``.
It answers ``forked`` (key, pid) and ``exited`` (key, pid, code: exit code or minus the signal, cpu_seconds,
max_rss_kb).
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from typing import Any

from scheduler_app import proc, process_tree
from scheduler_app.wire import Channel

#: What a forked child does: gets the message and its file descriptors by name, returns its exit code.
Role = Callable[[dict[str, Any], dict[str, int]], int]

MAX_FDS = 16
#: More than enough for a kill; a process in uninterruptible sleep must not stop us from ending.
_END_SECONDS = 2.0


class ForkServer:
    def __init__(self, control: socket.socket, lifeline: int, roles: dict[str, Role]) -> None:
        self._control = Channel(control, max_fds=MAX_FDS)
        self._lifeline = lifeline
        self._roles = roles
        self._keys: dict[int, Any] = {}
        #: processes that user code started while it was imported: they stay
        self._spared = set(process_tree.children(os.getpid()))
        #: read again after each end of a child: kept open, and there is one thread
        self._children_fd = process_tree.open_children()
        self._wakeup, self._wakeup_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        #: in a child: close what only the server needs, before the role begins
        self.private_fds = [control.fileno(), lifeline, self._wakeup, self._wakeup_write]
        if self._children_fd is not None:
            self.private_fds.append(self._children_fd)

    def announce(self, message: dict[str, Any]) -> None:
        self._control.send(message)

    def run(self) -> None:
        """Serve until the other side is gone, then end every descendant."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, _note)
        signal.set_wakeup_fd(self._wakeup_write, warn_on_full_buffer=False)
        gc.collect()
        # What exists now is never collected, so a child's collector does not copy its pages.
        gc.freeze()
        poll = select.poll()
        poll.register(self._lifeline, select.POLLIN)
        poll.register(self._wakeup, select.POLLIN)
        poll.register(self._control.fileno(), select.POLLIN)
        wrote = True
        while self._serve(poll):
            if wrote or self._control.wants_write:
                wrote = self._control.wants_write
                poll.modify(self._control.fileno(), select.POLLIN | (select.POLLOUT if wrote else 0))
        self._end()

    def _serve(self, poll: select.poll) -> bool:
        for fd, _ in poll.poll():
            if fd == self._lifeline:
                return False
            if fd == self._wakeup:
                if signal.SIGTERM in os.read(fd, 4096):
                    return False
                self._reap()
            else:
                self._control.flush()
                for message in self._control.receive():
                    if message["op"] == "stop":
                        return False
                    self._obey(message)
        return not self._control.closed

    def _obey(self, message: dict[str, Any]) -> None:
        if message["op"] == "fork":
            self._fork(message)
        elif message["op"] == "signal":
            for pid in [pid for pid, key in self._keys.items() if key == message["key"]]:
                if message["signal"] == signal.SIGKILL:
                    process_tree.kill_tree(pid)
                else:
                    process_tree.send_signal([pid], message["signal"])

    def _fork(self, message: dict[str, Any]) -> None:
        names = message.get("fds", ())
        fds = dict(zip(names, self._control.take_fds(len(names)), strict=True))
        server_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self.announce({"op": "exited", "key": message["key"], "pid": 0, "code": 1, "why": f"cannot fork: {error}"})
            pid = -1
        if pid == 0:
            self._become_child(message, fds, server_pid)
        for fd in fds.values():
            os.close(fd)
        if pid > 0:
            self._keys[pid] = message["key"]
            self.announce({"op": "forked", "key": message["key"], "pid": pid})

    def _become_child(self, message: dict[str, Any], fds: dict[str, int], server_pid: int) -> None:
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                proc.handle_signal(number, signal.SIG_DFL)
            role = message["role"]
            # A child that serves in its turn must end its own descendants first, so it gets a signal that it can catch.
            proc.die_with_parent(server_pid, signal.SIGTERM if role == "zygote" else signal.SIGKILL)
            os.setsid()
            proc.become_subreaper()
            self._control.sock.detach()
            # those of the next requests may be here already: this child could talk on a sibling's wire
            for fd in self._control.take_fds(len(self._control.fds)):
                os.close(fd)
            for fd in self.private_fds:
                if not (role == "zygote" and fd == self._lifeline):
                    os.close(fd)
            code = self._roles[role](message, fds)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)

    def _reap(self) -> None:
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            if pid in self._keys:
                self.announce(
                    {
                        "op": "exited",
                        "key": self._keys.pop(pid),
                        "pid": pid,
                        "code": os.waitstatus_to_exitcode(status),
                        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 4),
                        "max_rss_kb": usage.ru_maxrss,
                    }
                )
        self._end_orphans()

    def _end_orphans(self) -> None:
        """End what a child of ours left behind: we inherited it, and nobody else looks after it."""
        for child in process_tree.own_children(self._children_fd):
            if child not in self._keys and child not in self._spared:
                process_tree.kill_tree(child)

    def _end(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        process_tree.kill_descendants(os.getpid(), _END_SECONDS)
        os._exit(0)


def _note(number: int, frame: object) -> None:
    """The wakeup pipe tells the loop; a handler must exist for that."""
