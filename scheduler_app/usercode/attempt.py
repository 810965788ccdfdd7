"""One attempt, in its own process: take over the output, read ``start``, run the task, send one ``outcome``."""

from __future__ import annotations

import atexit
import contextlib
import datetime as dt
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app import proc
from scheduler_app.attempt_log import LogWriter, Masks, error_detail
from scheduler_app.sdk.runtime import set_port
from scheduler_app.usercode import execute, output
from scheduler_app.usercode.port import WirePort
from scheduler_app.wire import BlockingChannel

Bag = Mapping[str, Any]
#: what is done with the DAG: (dag, start document, port) → outcome document
Work = Callable[[Any, dict[str, Any], WirePort], dict[str, Any]]


def clock() -> dt.datetime:
    """The one place where an attempt reads the clock."""
    return dt.datetime.now(dt.UTC)


def run_attempt(
    message: dict[str, Any],
    fds: dict[str, int],
    bag: Callable[[], Bag],
    work: Work = execute.run,
    writer: LogWriter | None = None,
) -> int:
    """The role of a forked attempt: `fds` are wire, log, out and err; `bag` gives the file's DAGs by id.

    `writer`: to which output was led before the fork (:func:`prepared`).
    """
    if writer is None:
        writer = prepared()
    writer.fd = fds["log"]
    output.connect(fds["out"], fds["err"])
    _reseed()
    channel = BlockingChannel(socket.socket(fileno=fds["wire"]), message["max_bytes"])
    port = WirePort(channel, writer.masks)
    if message.get("environment"):
        os.environ.update(message["environment"])
    try:
        perform(channel, port, bag, writer, work, name=proc.set_name)
        _wind_up(writer)
        port.send_end()
    except (OSError, EOFError):
        # The supervisor is gone, and with it everything that we could report to.
        _wind_up(writer)
        return 1
    return 0


def prepared(masks: Masks | None = None) -> LogWriter:
    """The writer to which everything that this process prints and logs is led; its file comes with the attempt.

    `masks` hide what the file learned when it was imported.
    """
    writer = LogWriter(-1, clock, masks)
    output.lead_to(writer)
    return writer


def perform(
    channel: BlockingChannel,
    port: WirePort,
    bag: Callable[[], Bag],
    writer: LogWriter,
    work: Work = execute.run,
    name: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """From ``start`` to the outcome, which is sent; `name` is told what the process does."""
    start = channel.receive()
    own = start["ti"]
    port.own = (own["dag_id"], own["run_id"], own["task_id"], own["map_index"])
    name(f"task {own['task_id']}")
    outcome = _run(start, port, bag, work, writer)
    port.send_outcome(outcome)
    return outcome


def _run(
    start: dict[str, Any], port: WirePort, bag: Callable[[], Bag], work: Work, writer: LogWriter
) -> dict[str, Any]:
    dag_id = start["ti"]["dag_id"]
    set_port(port)
    try:
        dags = bag()
        if dag_id not in dags:
            raise LookupError(
                f"The file does not define the DAG {dag_id!r}; it has: {', '.join(sorted(dags)) or 'none'}."
            )
        return work(dags[dag_id], start, port)
    except BaseException as error:
        return failure(error, writer)


def failure(error: BaseException, writer: LogWriter) -> dict[str, Any]:
    """The outcome of an exception that nobody else turned into one."""
    detail = error_detail(type(error), error, error.__traceback__)
    writer.write(
        "error", "task", f"The attempt failed: {type(error).__name__}: {detail[0]['exc_value']}", error_detail=detail
    )
    described = {"type": type(error).__name__, "message": detail[0]["exc_value"], "traceback": None}
    return {"op": "outcome", "state": "failed", "retry": True, "error": described}


def _reseed() -> None:
    """Siblings share the zygote's memory: without this they would draw the same numbers from numpy (the module
    ``random`` sees to itself after a fork)."""
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        with contextlib.suppress(Exception):
            numpy.random.seed(int.from_bytes(os.urandom(4), "big"))


def _wind_up(writer: LogWriter) -> None:
    """What a Python process does at its end, without the slow rest: exit handlers, half lines."""
    proc.handle_signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        atexit._run_exitfuncs()
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()
    except BaseException as error:
        writer.write("error", "task", f"An exit handler failed: {type(error).__name__}: {error}")
    output.finish()
