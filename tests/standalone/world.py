"""A supervisor in a process of its own, driven by the tests beside it: ``python -m tests.standalone.world NAME…``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from random import Random

from scheduler_app.standalone.output import Output
from scheduler_app.standalone.supervisor import Service, Supervisor, fork


def patient() -> None:
    """Says its pid and waits for the end."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("up", os.getpid())
    while True:
        signal.pause()


def deaf() -> None:
    """Does not hear SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("up", os.getpid())
    while True:
        signal.pause()


def short() -> int:
    """Dies at once."""
    print("up", os.getpid())
    return 3


def broken() -> None:
    raise RuntimeError("no luck")


def parent() -> None:
    """Leaves a descendant in a session of its own that nobody waits for."""
    stray = subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("stray", stray.pid)
    patient()


KINDS: dict[str, Callable[[], object]] = {
    "patient": patient,
    "deaf": deaf,
    "short": short,
    "broken": broken,
    "parent": parent,
}


def main(arguments: list[str]) -> int:
    kinds = [argument for argument in arguments if not argument.startswith("--")]
    seconds = [float(argument.partition("=")[2]) for argument in arguments if argument.startswith("--stop-seconds=")]
    services = [Service(kind, 37, partial(fork, kind, KINDS[kind])) for kind in kinds]
    return Supervisor(
        services,
        output=Output(sys.stdout, width=10, colour=False),
        clock=time.monotonic,
        rng=Random(1),
        stop_seconds=seconds[0] if seconds else 1.0,
    ).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
