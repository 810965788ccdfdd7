"""The only program that imports user code: ``python -m scheduler_app.usercode.main --control FD --lifeline FD``.

Started by ``supervisor/`` with a scrubbed environment, it imports the SDK once and then forks, on request, a child in
one of the roles below. It never imports user code itself: a crash, a thread or a leak of a DAG file stays in a fork.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scheduler_app import proc, process_tree
from scheduler_app.attempt_log import LogWriter, Masks
from scheduler_app.usercode.attempt import Bag, prepared, run_attempt
from scheduler_app.usercode.fork_server import ForkServer, Role
from scheduler_app.wire import BlockingChannel

#: What nearly every DAG file and attempt imports sooner or later: here it is imported once, in an attempt each time.
PRELOAD = (
    "scheduler_app.usercode.load",
    "scheduler_app.usercode.execute",
    "scheduler_app.attempt_log",
    "scheduler_app.sdk.configuration",
    "scheduler_app.sdk.decorators.python",
    "scheduler_app.sdk.operators.bash",
    "scheduler_app.sdk.operators.empty",
    "scheduler_app.sdk.operators.python",
    "jinja2.ext",
    "jinja2.nativetypes",
    "jinja2.sandbox",
    "pendulum",
    "pprint",
)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scheduler_app.usercode.main", description=__doc__)
    parser.add_argument("--control", type=int, required=True, help="file descriptor of the control socket")
    parser.add_argument("--lifeline", type=int, required=True, help="read end of a pipe that ends with our parent")
    parser.add_argument("--folder", default="", help="working directory of user code")
    options = parser.parse_args(arguments)
    os.set_inheritable(options.control, False)
    os.set_inheritable(options.lifeline, False)
    if options.folder:
        os.chdir(options.folder)
    proc.become_subreaper()
    proc.set_name("tasks: base")
    for name in PRELOAD:
        importlib.import_module(name)
    _rehearse()
    server = ForkServer(socket.socket(fileno=options.control), options.lifeline, roles(options.lifeline))
    server.announce({"op": "ready", "pid": os.getpid()})
    server.run()


def _rehearse() -> None:
    """What attempts would each do for themselves, done before the first of them; one that fails costs only time."""
    from scheduler_app.usercode import rehearsal

    with contextlib.suppress(Exception):
        rehearsal.rehearse()


def roles(lifeline: int) -> dict[str, Role]:
    """What the base can fork."""
    return {
        "zygote": lambda message, fds: _zygote(message, fds, lifeline),
        "attempt": _fresh_attempt,
        "parse": _parse,
        "callback": _callback,
        "triggers": _triggers,
    }


def _zygote(message: dict[str, Any], fds: dict[str, int], lifeline: int) -> int:
    """Import one DAG file, say so, and fork attempts of it from then on."""
    proc.set_name(f"tasks: {Path(message['file']).name}")
    signal.signal(signal.SIGTERM, lambda number, frame: _end_now())
    _silence()
    control = socket.socket(fileno=fds["control"])
    bag, masks, reply = _load(message, BlockingChannel(socket.socket(fileno=fds["port"])))
    writer = _prepare(bag, masks)

    def attempt(order: dict[str, Any], its_fds: dict[str, int]) -> int:
        return run_attempt(order, its_fds, lambda: bag, writer=writer)

    server = ForkServer(control, lifeline, {"attempt": attempt})
    server.announce({"op": "loaded", **reply})
    server.run()
    return 0


def _prepare(bag: Bag, masks: Masks) -> LogWriter:
    """What each attempt would do for itself, and copy pages for: done once, before they are forked."""
    from scheduler_app.sdk import mapping
    from scheduler_app.usercode import own_django

    own_django.close_connections()
    for dag in bag.values():
        with contextlib.suppress(Exception):  # an attempt that needs it says what is wrong
            mapping.index_of(dag)
    return prepared(masks)


def _end_now() -> None:
    """Our parent died while the file was still being imported."""
    process_tree.kill_descendants(os.getpid())
    os._exit(1)


def _load(message: dict[str, Any], port: BlockingChannel) -> tuple[Bag, Masks, dict[str, Any]]:
    from scheduler_app.usercode import load, reading

    before = set(sys.modules)
    with reading.asking(port) as masks:
        try:
            bag = load.import_file(message["file"], message["folder"])
            error = None
        except BaseException as raised:
            bag, error = {}, masks.clean(load.describe_error(raised, message["folder"]))
    port.sock.close()
    reply = {
        "error": error,
        # A fork takes only the thread that forks along; locks that another one holds stay locked for ever.
        "threads": threading.active_count() > 1 or len(os.listdir("/proc/self/task")) > 1,
        "modules": _files_below(message["folder"], set(sys.modules) - before),
        "dag_ids": sorted(bag),
    }
    return bag, masks, reply


def _files_below(folder: str, names: set[str]) -> list[str]:
    """The files of imported modules that lie in the DAG folder: a change of one of them makes the zygote stale."""
    root = os.path.join(os.path.realpath(folder), "")
    files = {getattr(sys.modules.get(name), "__file__", None) for name in names}
    return sorted(file for file in files if file and os.path.realpath(file).startswith(root))


def _fresh_attempt(message: dict[str, Any], fds: dict[str, int]) -> int:
    """An attempt of a file that cannot be forked after its import (threads): import and run in one process."""

    def load_now() -> Bag:
        from scheduler_app.usercode import load

        return load.import_file(message["file"], message["folder"])

    return run_attempt(message, fds, load_now)


def _parse(message: dict[str, Any], fds: dict[str, int]) -> int:
    """Parse one file and send its document (docs/borders.md §5)."""
    from scheduler_app.usercode import load, reading
    from scheduler_app.usercode.planning import Planner

    proc.set_name(f"parse: {Path(message['file']).name}")
    _silence()
    channel = BlockingChannel(socket.socket(fileno=fds["wire"]), message["max_bytes"])
    planner = Planner(message.get("facts") or {})
    with reading.asking(channel) as masks:
        result = load.parse_file(message["file"], message["folder"], planner.visit)
    channel.send({**reading.masked(result, masks), "intervals": planner.intervals, "ranges": planner.ranges})
    return 0


def _callback(message: dict[str, Any], fds: dict[str, int]) -> int:
    """Run one callback of a DAG or task in a process of its own."""

    def call(dag: Any, start: dict[str, Any], port: Any) -> dict[str, Any]:
        from scheduler_app.usercode import execute

        return execute.run_callback(dag, message["kind"], message.get("task_id"), start, port, message.get("error"))

    def load_now() -> Bag:
        from scheduler_app.usercode import load

        return load.import_file(message["file"], message["folder"])

    return run_attempt(message, fds, load_now, call)


def _triggers(message: dict[str, Any], fds: dict[str, int]) -> int:
    """Run triggers of deferred tasks, many in one process."""
    from scheduler_app.usercode import triggers

    return triggers.run(message, fds)


def _silence() -> None:
    """Prints of a file while it is imported are nobody's: each attempt would repeat them."""
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    os.close(null)


Call = Callable[[Any, dict[str, Any], Any], dict[str, Any]]

if __name__ == "__main__":
    main()
