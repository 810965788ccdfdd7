"""Whose CPU a measurement of real processes took: read from /proc before and after, split by what the process is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from scheduler_app import process_tree

_TICKS = os.sysconf("SC_CLK_TCK")
_MEGABYTE = 1024 * 1024


def own_cpu(pid: int) -> float:
    """Seconds of CPU that this process took itself; 0 when it is gone."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS if fields else 0.0


def children_cpu(pid: int) -> float:
    """Seconds that its ended children took."""
    fields = _stat(pid)
    return (int(fields[13]) + int(fields[14])) / _TICKS if fields else 0.0


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


class Meter:
    """From :meth:`start` to :meth:`stop`: scheduler, runner, attempts, the forking of them, PostgreSQL."""

    def __init__(self) -> None:
        self._runner = 0
        self._before: dict[str, float] = {}
        self._after: dict[str, float] = {}
        self._idle_bytes = 0

    def start(self, runner_pid: int) -> None:
        self._runner = runner_pid
        self._before = self._read()

    def stop(self) -> None:
        """The first call counts: later ones find the processes gone."""
        if self._after:
            return
        self._after = self._read()
        keepers = [self._runner, *process_tree.descendants(self._runner)]
        self._idle_bytes = sum(process_tree.memory_bytes(pid) for pid in keepers)

    def split(self, tasks: int, seconds: float) -> dict[str, Any]:
        """CPU in ms for each task, how busy the cores were, and the memory that the runner and its zygotes keep."""
        spent = {name: self._after[name] - self._before.get(name, 0.0) for name in self._after}
        busy = sum(spent.values()) / seconds
        return {
            "cpu_ms_per_task": {name: round(1000 * value / tasks, 2) for name, value in spent.items()},
            "cores_busy": round(busy, 2),
            "idle_memory_mb": round(self._idle_bytes / _MEGABYTE, 1),
        }

    def _read(self) -> dict[str, float]:
        below = process_tree.descendants(self._runner)
        return {
            "scheduler": own_cpu(os.getpid()),
            "runner": own_cpu(self._runner),
            "forking": sum(own_cpu(pid) for pid in below),
            "attempts": sum(children_cpu(pid) for pid in below),
            "postgres": sum(own_cpu(pid) for pid in _backends()),
        }


def _backends() -> list[int]:
    """The server's processes of this database; their CPU is 0 when the server is on another machine."""
    from scheduler_app.models import db

    return [row[0] for row in db.fetch("SELECT pid FROM pg_stat_activity WHERE datname = current_database()")]
