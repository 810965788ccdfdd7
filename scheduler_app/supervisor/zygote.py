"""One DAG file, imported once: a child of the base that forks the attempts of that file."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduler_app import process_tree
from scheduler_app.supervisor import readings
from scheduler_app.supervisor.base import Base, Exit, exit_of
from scheduler_app.supervisor.child import Child
from scheduler_app.supervisor.events import Events
from scheduler_app.wire import Channel

#: (path, mtime in ns, size) of a file and of what it imports below its folder
Signature = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class DagFile:
    """Where user code comes from. ``path`` is absolute; ``folder`` is put on the child's module path."""

    path: str
    folder: str
    bundle_version: str = ""


def signature(paths: list[str]) -> Signature:
    """What changes when one of the files does; a missing file counts too."""
    found = []
    for path in paths:
        try:
            info = os.stat(path)
        except OSError:
            found.append((path, 0, -1))
        else:
            found.append((path, info.st_mtime_ns, info.st_size))
    return tuple(found)


class Zygote:
    """Children that are started while it still imports wait for that."""

    def __init__(self, base: Base, events: Events, file: DagFile, monotonic: Callable[[], float]) -> None:
        self.file, self.started_at = file, monotonic()
        #: when its process began to import: the start of a base does not count
        self.import_began_at: float | None = None
        self._monotonic = monotonic
        self.signature = signature([file.path])
        self.dag_ids: frozenset[str] | None = None
        #: its import started threads: it is gone, and each attempt imports the file itself
        self.threaded = False
        self.error: str | None = None
        self.alive = True
        self.retired = False
        self.pid: int | None = None
        self._base, self._events = base, events
        self._children: dict[int, Child] = {}
        self._waiting: list[tuple[Child, dict[str, Any]]] = []
        self._next_key = 0
        ours, theirs = socket.socketpair()
        self._channel = Channel(ours)
        port, their_port = socket.socketpair()
        #: for what the file asks while it is imported
        self._port = Channel(port)
        #: what it asked, with the answers; and the secrets that it learned
        self._asked: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
        self._secrets: list[Any] = []
        events.watch(self._channel, self._message, self._closed)
        events.watch(self._port, self._question, lambda why: None)
        self._base_key = base.fork(
            "zygote",
            {"control": theirs.detach(), "port": their_port.detach()},
            self._exited,
            self._forked,
            file=file.path,
            folder=file.folder,
        )

    @property
    def loading(self) -> bool:
        return self.alive and self.dag_ids is None

    @property
    def busy(self) -> int:
        return len(self._children) + len(self._waiting)

    def import_overdue(self, now: float, limit_seconds: float) -> bool:
        began = self.import_began_at
        return self.loading and began is not None and now >= began + limit_seconds

    def is_current(self) -> bool:
        """Whether the files, and the Variables and Connections that they read, are still those that it imported."""
        if signature([item[0] for item in self.signature]) != self.signature:
            return False
        for request, answer in self._asked.values():
            now = readings.reply(request)
            if "error" not in now and now != answer:
                return False
        return True

    def start(self, child: Child, message: dict[str, Any]) -> None:
        """Fork an attempt, now or when the import is done."""
        if self.loading:
            self._waiting.append((child, message))
        else:
            self._start(child, message)

    def _start(self, child: Child, message: dict[str, Any]) -> None:
        child.log.masks.add(self._secrets)
        if self.error is not None:
            child.log.write("error", "task", f"The DAG file could not be imported: {self.file.path}\n{self.error}")
            child.exited(Exit(1, f"the DAG file could not be imported: {self.error.strip().splitlines()[-1]}"))
        elif self.threaded:
            self._start_fresh(child, message)
        elif not self.alive:
            child.exited(Exit(None, "the process that forks this file's tasks died"))
        else:
            self._next_key += 1
            self._children[self._next_key] = child
            fds = child.take_fds()
            order = {"op": "fork", "key": self._next_key, "role": "attempt", "fds": list(fds), **message}
            self._events.send(self._channel, order, tuple(fds.values()), close_fds=True)

    def _start_fresh(self, child: Child, message: dict[str, Any]) -> None:
        key = self._base.fork(
            "attempt",
            child.take_fds(),
            child.exited,
            lambda pid: child.forked(pid, lambda number: self._base.kill(key, number)),
            file=self.file.path,
            folder=self.file.folder,
            **message,
        )

    def kill(self) -> None:
        """End it and all its attempts: the way out when it no longer obeys."""
        self._base.kill(self._base_key, signal.SIGKILL)

    def retire(self) -> None:
        """Take no more attempts; it ends when the last of them has."""
        self.retired = True
        if self.alive and not self.busy:
            self._events.send(self._channel, {"op": "stop"})

    def _message(self, message: dict[str, Any]) -> None:
        if message["op"] == "loaded":
            self._loaded(message)
        elif message["op"] == "forked":
            key = message["key"]
            if key in self._children:
                self._children[key].forked(message["pid"], lambda number: self._signal(key, number))
        elif message["op"] == "exited":
            child = self._children.pop(message["key"], None)
            if child is not None:
                child.exited(exit_of(message))
            if self.retired:
                self.retire()

    def _signal(self, key: int, number: int) -> None:
        self._events.send(self._channel, {"op": "signal", "key": key, "signal": int(number)})

    def _question(self, message: dict[str, Any]) -> None:
        if message["op"] == "mask_secret":
            self._secrets.append(message["value"])
        elif "id" in message:
            answer = readings.reply(message)
            name = readings.name_of(message)
            if name is not None:
                self._asked[name] = (message, answer)
            self._events.send(self._port, answer)

    def _close_port(self) -> None:
        """Its import is over: what it still said is heard first."""
        if self._port.sock.fileno() >= 0 and not self._port.closed:
            for message in self._port.receive():
                self._question(message)
        self._events.forget(self._port)
        self._port.close()

    def _loaded(self, message: dict[str, Any]) -> None:
        self._close_port()
        self.error = message["error"]
        self.dag_ids = frozenset(message["dag_ids"])
        modules = [path for path in message["modules"] if path != self.file.path]
        self.signature = self.signature + signature(modules)
        self.threaded = self.error is None and message["threads"]
        waiting, self._waiting = self._waiting, []
        for child, order in waiting:
            self._start(child, order)
        if self.threaded or self.error is not None:
            self.retire()

    def _forked(self, pid: int) -> None:
        self.pid, self.import_began_at = pid, self._monotonic()

    def _exited(self, exit: Exit) -> None:
        self._gone(exit)

    def lost(self) -> None:
        """The base was stopped, and everything below it with it."""
        self._gone(Exit(None, "stopped"))

    def _closed(self, why: str) -> None:
        # The base tells how it ended; when the base is gone too, this is all that we hear.
        if not self._base.alive:
            self._gone(Exit(None, why))

    def _gone(self, exit: Exit) -> None:
        if not self.alive:
            return
        self.alive = False
        if self._channel.sock.fileno() >= 0 and not self._channel.closed:
            for message in self._channel.receive():
                self._message(message)
        self._close_port()
        self._events.forget(self._channel)
        self._channel.close()
        if self.error is not None and self.dag_ids is None:
            exit = Exit(exit.code, self.error)
        lost = [*self._children.values(), *(child for child, _ in self._waiting)]
        self._children.clear()
        self._waiting.clear()
        for child in lost:
            _wait_until_gone(child.pid)
            child.exited(Exit(None, f"the process that forks this file's tasks is gone: {exit.text}"))
        if self.dag_ids is None:
            self.dag_ids = frozenset()


def _wait_until_gone(pid: int | None) -> None:
    """An attempt dies with its zygote by the kernel's hand; the report must not overtake that."""
    for _ in range(200):
        if pid is None or not process_tree.is_alive(pid):
            return
        time.sleep(0.001)
