"""Parse DAG files in children: one fork of the preloaded base for each file, with limits on time and memory."""

from __future__ import annotations

import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from scheduler_app import process_tree
from scheduler_app.supervisor import readings
from scheduler_app.supervisor.base import Base, Exit
from scheduler_app.supervisor.events import Events
from scheduler_app.wire import Channel

#: How often the memory of running parses is looked at.
_MEMORY_SECONDS = 0.1
_BASE_RETRY_SECONDS = 1.0
_LOST_LIMIT = 3


@dataclass(slots=True)
class Parse:
    """One file on its way. ``document`` is that of docs/borders.md §5 once it is there, also for a child that died."""

    path: str
    folder: str
    facts: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] | None = None
    started_at: float = 0.0
    key: int = 0
    pid: int | None = None
    #: why we killed it
    killed: str = ""
    #: how often the base died under it; that is not the file's fault until it happens again and again
    lost: int = 0
    channel: Channel | None = field(default=None, repr=False)
    #: what it read while it was imported, as ``readings.name_of`` says
    asked: set[str] = field(default_factory=set)


class ParsePool:
    """Parses up to `size` files at once. ``submit`` and ``poll`` never block longer than told; ``run`` is both in one.

    `monotonic` gives seconds; `timeout_seconds` and `memory_mb` (0 = no limit) are for each file. Single-threaded.
    """

    def __init__(
        self,
        size: int,
        timeout_seconds: float,
        memory_mb: int,
        *,
        environ: Mapping[str, str],
        monotonic: Callable[[], float],
        max_bytes: int = 256 * 1024 * 1024,
        work_folder: str = "",
    ) -> None:
        self._size, self._timeout_seconds, self._memory_bytes = size, timeout_seconds, memory_mb * 1024 * 1024
        self._environ, self._monotonic, self._max_bytes = environ, monotonic, max_bytes
        self._work_folder = work_folder or os.getcwd()
        self._events = Events()
        self._base: Base | None = None
        self._base_retry_at = 0.0
        self._waiting: deque[Parse] = deque()
        self._running: list[Parse] = []
        self._done: list[Parse] = []

    @property
    def pending(self) -> int:
        """Files that were submitted and are not done."""
        return len(self._waiting) + len(self._running)

    def submit(self, path: str, folder: str, **facts: Any) -> None:
        """Parse the file at the absolute `path`; `folder` is the DAG folder that it lies in.

        `facts` go on to ``usercode.planning.Planner`` (those that are not empty; docs/borders.md §7).
        """
        self._waiting.append(Parse(path, folder, facts={name: fact for name, fact in facts.items() if fact}))
        self._fill()

    def poll(self, timeout_seconds: float) -> list[Parse]:
        """Wait at most so long for something to happen; the files that are done now."""
        self._fill()
        self._events.poll(0 if self._done else self._wait_seconds(timeout_seconds))
        self._enforce()
        self._fill()
        done, self._done = self._done, []
        return done

    def run(self, files: Iterable[tuple[str, str]]) -> Iterator[Parse]:
        """Parse all (path, folder) pairs; yields each as it is done."""
        for path, folder in files:
            self.submit(path, folder)
        while self.pending or self._done:
            yield from self.poll(1.0)

    def stop(self) -> None:
        """End every child; files that are not done are forgotten."""
        self._waiting.clear()
        if self._base is not None:
            self._base.stop()
            self._base = None
        self._running.clear()
        self._done.clear()

    def close(self) -> None:
        self.stop()
        self._events.close()

    def _fill(self) -> None:
        while self._waiting and len(self._running) < self._size:
            base = self._running_base()
            if base is None:
                return
            self._start(base, self._waiting.popleft())

    def _running_base(self) -> Base | None:
        if self._base is not None and self._base.alive:
            return self._base
        now = self._monotonic()
        if now < self._base_retry_at:
            return None
        if self._base is not None:
            self._base.reap()
        self._base_retry_at = now + _BASE_RETRY_SECONDS
        self._base = Base(self._events, self._environ, self._work_folder)
        return self._base

    def _start(self, base: Base, parse: Parse) -> None:
        ours, theirs = socket.socketpair()
        parse.channel = Channel(ours, self._max_bytes)
        parse.started_at = self._monotonic()
        self._running.append(parse)
        self._events.watch(parse.channel, lambda message: self._message(parse, message), lambda why: None)
        parse.key = base.fork(
            "parse",
            {"wire": theirs.detach()},
            lambda exit: self._ended(parse, exit),
            lambda pid: self._forked(parse, pid),
            file=parse.path,
            folder=parse.folder,
            facts=parse.facts,
            max_bytes=self._max_bytes,
        )

    def _forked(self, parse: Parse, pid: int) -> None:
        # The file's time begins here: a base that is still starting is not its fault.
        parse.pid, parse.started_at = pid, self._monotonic()

    def _message(self, parse: Parse, message: dict[str, Any]) -> None:
        if message["op"] == "parsed":
            parse.document = message
        elif "id" in message and parse.channel is not None:
            name = readings.name_of(message)
            if name is not None:
                parse.asked.add(name)
            self._events.send(parse.channel, readings.reply(message))

    def _ended(self, parse: Parse, exit: Exit) -> None:
        if parse not in self._running:
            return
        self._running.remove(parse)
        if parse.channel is not None:
            if not parse.channel.closed:
                for message in parse.channel.receive():
                    if message["op"] == "parsed":
                        parse.document = message
            self._events.forget(parse.channel)
            parse.channel.close()
            parse.channel = None
        if parse.document is None and not parse.killed and self._retry(parse):
            return
        if parse.document is None or parse.killed:
            why = parse.killed or f"The import of the file ended its process: {exit.text}."
            parse.document = self._failed(parse, why)
        parse.document["asked"] = sorted(parse.asked)
        self._done.append(parse)

    def _retry(self, parse: Parse) -> bool:
        """Whether the file waits for another base: a base that never became ready says nothing about a file."""
        if self._base is None or self._base.alive:
            return False
        parse.lost += 1 if self._base.ready else 0
        if parse.lost >= _LOST_LIMIT:
            return False
        parse.pid = None
        self._waiting.appendleft(parse)
        return True

    def _failed(self, parse: Parse, why: str) -> dict[str, Any]:
        return {
            "op": "parsed",
            "file": os.path.relpath(parse.path, parse.folder),
            "dags": [],
            "import_error": why,
            "dag_errors": {},
            "warnings": [],
            "modules": [],
            "seconds": self._monotonic() - parse.started_at,
        }

    def _enforce(self) -> None:
        now = self._monotonic()
        for parse in self._running:
            if parse.killed or parse.pid is None:
                continue
            if now - parse.started_at >= self._timeout_seconds:
                parse.killed = (
                    f"The import took longer than {self._timeout_seconds:g} s and was stopped. Move slow work "
                    "from the top level of the file into tasks, or raise parse_timeout_seconds."
                )
            elif self._memory_bytes and self._memory(parse.pid) > self._memory_bytes:
                parse.killed = (
                    f"The import took more than {self._memory_bytes // 1048576} MB of memory and was stopped. "
                    "Load data inside tasks, or raise parse_memory_mb."
                )
            if parse.killed and self._base is not None:
                self._base.kill(parse.key, signal.SIGKILL)

    def _memory(self, pid: int) -> int:
        return sum(map(process_tree.resident_bytes, (pid, *process_tree.descendants(pid))))

    def _wait_seconds(self, timeout_seconds: float) -> float:
        if not self._running:
            return min(timeout_seconds, _BASE_RETRY_SECONDS) if self._waiting else timeout_seconds
        now = self._monotonic()
        due = min(parse.started_at for parse in self._running) + self._timeout_seconds - now
        memory = _MEMORY_SECONDS if self._memory_bytes else due
        return max(0.0, min(timeout_seconds, due, memory))
