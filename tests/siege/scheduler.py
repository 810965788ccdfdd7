"""One scheduler of the siege: the real process of ``runscheduler``, with an executor that costs nothing.

Forked from a process that has imported everything already: one that is killed every second spends no second on imports.
"""

from __future__ import annotations

import os
import random
import signal

import django

django.setup()

from scheduler_app import proc  # noqa: E402
from scheduler_app.scheduler.process import EXECUTORS, Options, run_scheduler  # noqa: E402

from .free import FreeExecutor  # noqa: E402


def run(slots: int, ledger: str, log: str, seed: int) -> None:
    """The whole life of the process."""
    proc.die_with_parent(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(into, 1)
    os.dup2(into, 2)
    book = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    # made when the process begins, as any other executor is
    EXECUTORS[FreeExecutor.name] = lambda knobs: FreeExecutor(slots, book, random.Random(seed))
    run_scheduler(Options(executor=FreeExecutor.name))
