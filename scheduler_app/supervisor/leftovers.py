"""Processes that outlived everything: their supervisor, base and zygote were all killed at the same moment.

Every child carries a mark in its environment that names its supervisor by pid and start time. Whoever starts a base
looks for marks of supervisors that are gone, and ends those who carry them: nobody else will.
"""

from __future__ import annotations

import logging
import os
import signal

from scheduler_app import process_tree

log = logging.getLogger(__name__)

MARK = "SCHEDULER_SUPERVISOR"


def mark(pid: int) -> str:
    """Names one process for ever: a pid may be used again, with its start time it is not."""
    return f"{pid}:{process_tree.start_ticks(pid)}"


def is_gone(text: str) -> bool:
    """Whether the process that a mark names has ended."""
    pid, _, ticks = text.partition(":")
    return not pid.isdigit() or str(process_tree.start_ticks(int(pid))) != ticks or not process_tree.is_alive(int(pid))


def marked() -> dict[int, str]:
    """Every process of ours that carries a mark, and the mark."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            text = _mark_of(int(name))
            if text:
                found[int(name)] = text
    return found


def end_leftovers() -> int:
    """Ends those whose supervisor is gone; how many there were."""
    ended = 0
    for _ in range(10):
        orphans = [pid for pid, text in marked().items() if is_gone(text) and process_tree.is_alive(pid)]
        if not orphans:
            break
        process_tree.send_signal(orphans, signal.SIGKILL)
        ended += len(orphans)
    if ended:
        log.warning("Ended %d processes whose supervisor is gone", ended)
    return ended


def _mark_of(pid: int) -> str:
    prefix = f"{MARK}=".encode()
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            for entry in file.read().split(b"\0"):
                if entry.startswith(prefix):
                    return entry[len(prefix) :].decode("ascii", "replace")
    except OSError:
        pass
    return ""
