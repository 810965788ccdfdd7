"""What a fork server's children inherit: their own file descriptors, and nobody else's."""

from __future__ import annotations

import os
import socket

from scheduler_app.usercode.fork_server import MAX_FDS, ForkServer
from scheduler_app.wire import Channel


def _tell_pipes(message: dict[str, object], fds: dict[str, int]) -> int:
    """A role: writes to its own pipe which pipes it holds."""
    held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if _is_open(fd)]
    os.write(fds["out"], " ".join(held).encode())
    return 0


def _is_open(fd: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{fd}")


def test_a_child_does_not_hold_what_came_for_the_next_one() -> None:
    ours, theirs = socket.socketpair()
    lifeline, keep = os.pipe()
    pipes = [os.pipe() for _ in range(3)]
    channel = Channel(ours, max_fds=MAX_FDS)
    for key, (_, end) in enumerate(pipes):
        channel.send({"op": "fork", "key": key, "role": "tell", "fds": ["out"]}, (end,))
    channel.flush()
    names = [os.readlink(f"/proc/self/fd/{end}") for _, end in pipes]
    pid = os.fork()
    if pid == 0:
        for _, end in pipes:
            os.close(end)
        os.close(keep)
        ours.close()
        ForkServer(theirs, lifeline, {"tell": _tell_pipes}).run()
    for _, end in pipes:
        os.close(end)
    theirs.close()
    told = [os.read(begin, 65536).decode().split() for begin, _ in pipes]
    os.close(keep)
    os.waitpid(pid, 0)
    # the reading ends are ours, and came to all of them by the fork: they bear the same names
    writing = [[name for name in names if held.count(name) > 1] for held in told]
    assert writing == [[name] for name in names]
