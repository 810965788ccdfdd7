"""What bounds an attempt from inside: its time-out, and the signal that ends it."""

from __future__ import annotations

import contextlib
import logging
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from scheduler_app import proc
from scheduler_app.sdk.exceptions import AirflowTaskTerminated, AirflowTaskTimeout

log = logging.getLogger("airflow.task")


def prepare_logging() -> None:
    """Everything that is logged at INFO or above reaches the task's log: loggers write to the process's output."""
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler(sys.stdout)
        handler.setFormatter(logging.Formatter("%(levelname)s - %(message)s"))
        root.addHandler(handler)
    if root.level in (logging.NOTSET, logging.WARNING):
        root.setLevel(logging.INFO)


@contextlib.contextmanager
def execution_timeout(task: Any, context: Any) -> Iterator[None]:
    """Raises AirflowTaskTimeout inside the block once ``execution_timeout`` is over; the supervisor kills a task that
    goes on.

    The time counts from the attempt's own start.
    """
    limit = task.execution_timeout
    if limit is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    seconds = limit.total_seconds()
    if seconds <= 0:
        raise AirflowTaskTimeout(f"execution_timeout of task {task.task_id!r} is over before it began.")

    def ring(signum: int, frame: Any) -> None:
        raise AirflowTaskTimeout(
            f"Timeout, PID {_pid()}: task {task.task_id!r} ran longer than its execution_timeout ({limit})."
        )

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except AirflowTaskTimeout:
        signal.setitimer(signal.ITIMER_REAL, 0)
        log.error("The task ran longer than its execution_timeout (%s): it is ended.", limit)
        task.on_kill()
        raise
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _pid() -> int:
    import os

    return os.getpid()


class on_terminate:  # noqa: N801 - it is used as a function
    """Inside the block SIGTERM calls the task's ``on_kill`` and raises AirflowTaskTerminated."""

    def __init__(self, task: Any) -> None:
        self._task = task
        self._is_main = threading.current_thread() is threading.main_thread()

    def __enter__(self) -> None:
        if self._is_main:
            self._before = proc.handle_signal(signal.SIGTERM, self._end)

    def __exit__(self, *error: object) -> None:
        if self._is_main:
            proc.handle_signal(signal.SIGTERM, self._before)

    def _end(self, signum: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        log.error("The task was told to end (SIGTERM).")
        try:
            self._task.on_kill()
        finally:
            raise AirflowTaskTerminated(f"Task {self._task.task_id!r} received SIGTERM.")
