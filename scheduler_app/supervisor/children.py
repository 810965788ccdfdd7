"""Starts attempts: keeps the base alive, one zygote for each DAG file in use, and ends what must end."""

from __future__ import annotations

import os
import signal
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler_app import process_tree
from scheduler_app.supervisor.base import Base
from scheduler_app.supervisor.child import Child, Clocks, Watcher
from scheduler_app.supervisor.events import Events
from scheduler_app.supervisor.zygote import DagFile, Zygote

#: A zygote that does not carry out a SIGKILL within this is killed itself.
_ZYGOTE_OBEYS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Limits:
    max_message_bytes: int = 64 * 1024 * 1024
    import_timeout_seconds: float = 50.0
    #: memory of all idle zygotes together; the least recently used ones go first
    zygote_memory_bytes: int = 512 * 1024 * 1024
    #: an older zygote imports its file again before the next attempt: the file may read other data
    zygote_max_age_seconds: float = 300.0


class BaseUnavailable(OSError):
    """No child can be started now; try again in a while."""


class Children:
    """Every attempt of one runner. Call :meth:`tick` a few times a second, :meth:`tidy` every few seconds."""

    def __init__(
        self,
        events: Events,
        clocks: Clocks,
        environ: Mapping[str, str],
        limits: Limits,
        work_folder: str = "",
    ) -> None:
        self._events, self._clocks, self._limits = events, clocks, limits
        self._environ, self._work_folder = environ, work_folder or os.getcwd()
        self._base: Base | None = None
        #: starts in a row that never became ready, and when the next one may be tried
        self._base_failures = 0
        self._base_retry_at = 0.0
        self._zygotes: OrderedDict[DagFile, Zygote] = OrderedDict()
        self._retired: list[Zygote] = []
        self._children: dict[Child, Zygote] = {}
        self._callbacks: list[Child] = []

    @property
    def base_pid(self) -> int | None:
        return self._base.pid if self._base is not None and self._base.alive else None

    @property
    def zygotes(self) -> list[Zygote]:
        return [zygote for zygote in (*self._zygotes.values(), *self._retired) if zygote.alive]

    def preload(self) -> None:
        """Start the base before the first attempt needs it."""
        self._running_base()

    def start(
        self,
        file: DagFile,
        log_file: Path,
        start: dict[str, Any],
        watcher: Watcher,
        environment: Mapping[str, str] | None = None,
    ) -> Child:
        """Start one attempt with its ``start`` document. Raises OSError (log, sockets, base) and wire.FrameTooLarge."""
        zygote = self._zygote(file, start["ti"]["dag_id"])
        child = Child(self._events, log_file, self._limits.max_message_bytes, self._clocks, watcher)
        try:
            child.send(start)
        except Exception:
            child.abandon()
            raise
        self._children[child] = zygote
        message = {"max_bytes": self._limits.max_message_bytes, "environment": dict(environment or {})}
        zygote.start(child, message)
        return child

    def call_back(
        self,
        file: DagFile,
        log_file: Path,
        start: dict[str, Any],
        watcher: Watcher,
        *,
        kind: str,
        task_id: str | None = None,
        error: dict[str, Any] | None = None,
    ) -> Child:
        """Run the author's callbacks of one kind in a process of their own, which imports the file anew.

        ``usercode.execute.run_callback`` has the kinds; `task_id` None is the DAG. Raises as :meth:`start`.
        """
        base = self._running_base()
        child = Child(self._events, log_file, self._limits.max_message_bytes, self._clocks, watcher)
        try:
            child.send(start)
        except Exception:
            child.abandon()
            raise
        key = base.fork(
            "callback",
            child.take_fds(),
            child.exited,
            lambda pid: child.forked(pid, lambda number: base.kill(key, number)),
            file=file.path,
            folder=file.folder,
            max_bytes=self._limits.max_message_bytes,
            kind=kind,
            task_id=task_id,
            error=error,
        )
        self._callbacks.append(child)
        return child

    def tick(self) -> None:
        """Kill what outlived its grace time, and imports that take too long."""
        now = self._clocks.monotonic()
        for child, zygote in list(self._children.items()):
            if child.done:
                del self._children[child]
            elif child.kill_at is not None and now >= child.kill_at:
                self._escalate(child, zygote, now)
        for child in list(self._callbacks):
            if child.done:
                self._callbacks.remove(child)
            elif child.kill_at is not None and now >= child.kill_at:
                self._escalate(child, None, now)
        limit = self._limits.import_timeout_seconds
        for zygote in self.zygotes:
            if zygote.import_overdue(now, limit):
                zygote.error = f"its import took longer than {limit:g} s (parse_timeout_seconds)"
                zygote.kill()

    def due_seconds(self) -> float | None:
        """Seconds until :meth:`tick` has something to do; None when nothing is planned."""
        watched = (*self._children, *self._callbacks)
        times = [child.kill_at for child in watched if child.kill_at is not None and not child.done]
        times += [
            zygote.import_began_at + self._limits.import_timeout_seconds
            for zygote in (*self._zygotes.values(), *self._retired)
            if zygote.loading and zygote.import_began_at is not None
        ]
        return max(0.0, min(times) - self._clocks.monotonic()) if times else None

    def tidy(self) -> None:
        """Drop ended zygotes, and idle ones that are too old or beyond the memory limit."""
        self._retired = [zygote for zygote in self._retired if zygote.alive]
        for file, zygote in list(self._zygotes.items()):
            if not zygote.alive and not zygote.threaded:
                del self._zygotes[file]
        idle = [zygote for zygote in self._zygotes.values() if zygote.alive and not zygote.busy and not zygote.loading]
        oldest = self._clocks.monotonic() - self._limits.zygote_max_age_seconds
        for zygote in [zygote for zygote in idle if zygote.started_at < oldest]:
            # The next attempt would have it imported again anyway.
            idle.remove(zygote)
            self._retire(zygote)
        sizes = {zygote: process_tree.memory_bytes(zygote.pid or 0) for zygote in idle}
        total = sum(sizes.values())
        for zygote in idle:
            if total <= self._limits.zygote_memory_bytes:
                break
            total -= sizes[zygote]
            self._retire(zygote)
        if self._base is not None:
            self._base.reap()

    def stop(self) -> None:
        """End every child and the base; returns when no descendant is left."""
        if self._base is not None:
            self._base.stop()
        for zygote in (*self._zygotes.values(), *self._retired):
            zygote.lost()
        self._base = None
        self._zygotes.clear()
        self._retired.clear()
        self._children.clear()
        self._callbacks.clear()

    def _running_base(self) -> Base:
        if self._base is not None and self._base.alive:
            return self._base
        now = self._clocks.monotonic()
        if now < self._base_retry_at:
            raise BaseUnavailable("The process that forks tasks does not start: see the error that it printed.")
        if self._base is not None:
            self._base.reap()
            self._base_failures = 0 if self._base.ready else self._base_failures + 1
        self._base = Base(self._events, self._environ, self._work_folder)
        self._base_retry_at = now + (min(30.0, 0.5 * 2**self._base_failures) if self._base_failures else 0.0)
        return self._base

    def _zygote(self, file: DagFile, dag_id: str) -> Zygote:
        base = self._running_base()
        found = self._zygotes.get(file)
        if found is not None and self._usable(found, dag_id):
            self._zygotes.move_to_end(file)
            return found
        if found is not None:
            self._retire(found)
        zygote = Zygote(base, self._events, file, self._clocks.monotonic)
        self._zygotes[file] = zygote
        return zygote

    def _usable(self, zygote: Zygote, dag_id: str) -> bool:
        if not zygote.is_current():
            return False
        if zygote.loading:
            return True
        age = self._clocks.monotonic() - zygote.started_at
        if age > self._limits.zygote_max_age_seconds:
            return False
        if zygote.threaded:
            return True
        # A file may name its DAGs from other data: ask again before saying that it is not there.
        return zygote.alive and zygote.error is None and (dag_id in (zygote.dag_ids or ()) or age < 1.0)

    def _retire(self, zygote: Zygote) -> None:
        self._zygotes.pop(zygote.file, None)
        zygote.retire()
        if zygote.alive:
            self._retired.append(zygote)

    def _escalate(self, child: Child, zygote: Zygote | None, now: float) -> None:
        child.kills += 1
        child.kill_at = now + _ZYGOTE_OBEYS_SECONDS
        if child.kills == 1 or zygote is None:
            child.log.write("error", "task", "The task did not stop in time; its process tree is killed.")
            child.signal(signal.SIGKILL)
        else:
            zygote.kill()
