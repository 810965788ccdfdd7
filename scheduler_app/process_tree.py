"""Trees of processes on Linux: see a whole one, end a whole one. ``proc`` has what a process does to itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable


def children(pid: int) -> list[int]:
    """Direct children of a process, zombies among them; empty when it is gone."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        if os.path.exists(f"/proc/{pid}/stat") and not _kernel_lists_children():
            return [child for child, parent in _parents() if parent == pid]
    return found


def open_children() -> int | None:
    """A file that lists the children of this process, which has one thread, for :func:`own_children`; None where the
    kernel has none."""
    try:
        return os.open(f"/proc/self/task/{os.getpid()}/children", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def own_children(fd: int | None) -> list[int]:
    """As :func:`children` for this process itself, many times over."""
    if fd is None:
        return children(os.getpid())
    data = b""
    while more := os.pread(fd, 65536, len(data)):
        data += more
    return [int(pid) for pid in data.split()]


def _kernel_lists_children() -> bool:
    return os.path.exists("/proc/thread-self/children")


def _parents() -> list[tuple[int, int]]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat(int(name))
            if fields:
                found.append((int(name), int(fields[1])))
    return found


def _stat(pid: int) -> list[bytes]:
    """The fields of ``/proc/…/stat`` from the state on (state, ppid, pgrp, session, …); empty when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid: int) -> bool:
    """Whether the process runs; a zombie does not."""
    fields = _stat(pid)
    return bool(fields) and fields[0] not in (b"Z", b"X")


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot: with the pid it names one process for ever."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def descendants(pid: int) -> list[int]:
    """Every living descendant, parents before their children."""
    found: list[int] = []
    level = [pid]
    while level:
        level = [child for parent in level for child in children(parent)]
        found += [child for child in level if is_alive(child)]
    return found


def memory_bytes(pid: int) -> int:
    """Memory that this process alone would give back (private pages; shared ones by their share); 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def resident_bytes(pid: int) -> int:
    """Resident memory of one process, shared pages included; 0 when it is gone. Much cheaper than its share."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def send_signal(pids: Iterable[int], number: int) -> None:
    """Signal each process that still exists."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def kill_descendants(
    pid: int,
    within_seconds: float = 2.0,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    spare: Callable[[int], bool] = lambda child: False,
) -> bool:
    """SIGKILL every living descendant, again and again until none is left, but those for which `spare` is true.

    Killing one makes orphans, which the nearest subreaper inherits: hence the repetition. Returns whether all are gone.
    """
    deadline = monotonic() + within_seconds
    while True:
        found = [child for child in descendants(pid) if not spare(child)]
        if not found:
            return True
        send_signal(found, signal.SIGKILL)
        if pid == os.getpid():
            _reap(found)
        if monotonic() >= deadline:
            return False
        time.sleep(0.001)


def _reap(pids: Iterable[int]) -> None:
    for child in pids:
        try:
            os.waitpid(child, os.WNOHANG)
        except ChildProcessError:
            continue


def kill_tree(pid: int, within_seconds: float = 2.0) -> bool:
    """SIGKILL a process and every descendant of it. Returns whether the descendants are gone.

    The root is stopped first and ended last: a root that is a subreaper keeps inheriting the orphans which
    the killing makes, so none of them slips out of the tree.
    """
    send_signal([pid], signal.SIGSTOP)
    done = kill_descendants(pid, within_seconds)
    send_signal([pid], signal.SIGKILL)
    return done
