"""Sets the limits of memory, CPU time and open files in the process of an attempt, and says when one of them struck."""

from __future__ import annotations

import errno
import logging
import os
import resource
import signal
from typing import Any

from scheduler_app.engine import resources
from scheduler_app.engine.resources import Resources
from scheduler_app.sdk.exceptions import AirflowTaskTimeout

log = logging.getLogger("airflow.task")

_MEGABYTE = 1024 * 1024
#: From the signal that a task can hear to the one that it cannot.
_CPU_GRACE_SECONDS = 5
#: those of the attempt that runs in this process
_in_force = Resources()


def is_own_process(start: dict[str, Any]) -> bool:
    """Whether it ends with the attempt: only a supervisor's ``start`` has limits."""
    return start.get("limits") is not None


def limit(task: Any, start: dict[str, Any]) -> None:
    """Applies the task's limits, for good: only in a process of the attempt's own."""
    global _in_force
    if not is_own_process(start) or not (start["limits"] or task.executor_config):
        return
    _in_force = resources.of(task.executor_config, resources.read(start["limits"]))
    if _in_force.memory_mb:
        # What a process may write to: the kernel counts its own pages, not the code and files that it maps.
        _lower(resource.RLIMIT_DATA, _data_bytes() + int(_in_force.memory_mb * _MEGABYTE))
    if _in_force.open_files:
        _lower(resource.RLIMIT_NOFILE, int(_in_force.open_files))
    if _in_force.cpu_seconds:
        _limit_cpu(task, _in_force.cpu_seconds)


def explained(error: BaseException, message: str) -> str:
    """The error's message, and which limit it comes from."""
    if isinstance(error, MemoryError) and _in_force.memory_mb:
        return f"{message or 'out of memory'} (its memory limit is {_in_force.memory_mb:g} MB: limits.memory_mb)"
    if isinstance(error, OSError) and error.errno == errno.EMFILE and _in_force.open_files:
        return f"{message} (it may open {_in_force.open_files:g} files: limits.open_files)"
    return message


def _limit_cpu(task: Any, seconds: float) -> None:
    def over(signum: int, frame: Any) -> None:
        signal.signal(signal.SIGXCPU, signal.SIG_IGN)
        log.error("The task used more CPU time than its limit of %g s: it is ended.", seconds)
        task.on_kill()
        raise AirflowTaskTimeout(
            f"Task {task.task_id!r} used more CPU time than its limit of {seconds:g} s (limits.cpu_seconds)."
        )

    signal.signal(signal.SIGXCPU, over)
    # The kernel counts whole seconds, of each process by itself; a fork begins at nought.
    least = max(1, int(seconds))
    _lower(resource.RLIMIT_CPU, least, least + _CPU_GRACE_SECONDS)


def _lower(kind: int, soft: int, hard: int | None = None) -> None:
    """Sets a limit, but never above what this process was given."""
    _, most = resource.getrlimit(kind)
    hard = soft if hard is None else hard
    if most != resource.RLIM_INFINITY:
        soft, hard = min(soft, most), min(hard, most)
    resource.setrlimit(kind, (soft, hard))


def _data_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
