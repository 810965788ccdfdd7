"""The scheduler's process: its job row, its executors, its sleep, and an orderly end."""

from __future__ import annotations

import logging
import os
import random
import select
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import FrameType
from typing import Any

import psycopg2

from scheduler_app import inspection, metrics
from scheduler_app.conf import Conf, conf
from scheduler_app.executors.base import Executor
from scheduler_app.executors.celery import CeleryExecutor
from scheduler_app.executors.local import LocalExecutor
from scheduler_app.models import db
from scheduler_app.models.lease import Lease

from .loop import JUDGES, Loop, probe
from .tick import Tick

log = logging.getLogger("scheduler_app.scheduler")

#: Sleep after a pass that failed as a whole (the database is away): first, and longest.
_RETRY_FIRST_SECONDS = 0.2
_RETRY_LONGEST_SECONDS = 10.0
#: How soon the loop comes back when a phase could not get a lock.
_AGAIN_SECONDS = 0.02

#: What ``SCHEDULER_EXECUTOR`` and ``--executor`` may name.
EXECUTORS: dict[str, Callable[[Conf], Executor]] = {"LocalExecutor": LocalExecutor, "CeleryExecutor": CeleryExecutor}


@dataclass(frozen=True, slots=True)
class Options:
    """How long and how to run; the defaults run until a signal comes."""

    #: stop after so many passes of the loop (−1: never)
    num_runs: int = -1
    #: longest sleep between two passes; None = ``idle_poll_seconds``
    idle_sleep_seconds: float | None = None
    #: names of the executors, separated by commas, that of tasks that name none first; None = the setting
    executor: str | None = None
    #: stop when this says so (the DAG processor beside us has parsed everything so many times)
    until: Callable[[], bool] = lambda: False


def run_scheduler(options: Options | None = None) -> None:
    """Runs the loop until a signal or the options end it. Two signals end it at once."""
    SchedulerProcess(conf(), options or Options()).run()


class SchedulerProcess:
    def __init__(self, knobs: Conf, options: Options, executors: dict[str, Executor] | None = None) -> None:
        self.conf = knobs
        self.options = options
        self.executors = make_executors(knobs, options) if executors is None else executors
        self.loop = Loop()
        self.stopping = threading.Event()
        self.bell = Bell()
        self.rng = random.Random()
        self.passes = 0
        self.lease: Lease | None = None
        #: the database's clock and ours at the last pass
        self.last_clocks: tuple[datetime, float] | None = None

    def run(self) -> None:
        """As :func:`run_scheduler`; a scheduler whose lease was lost goes on as a new job, and so does what it runs."""
        self._take_signals()
        try:
            while not self.stopping.is_set() and not self._is_over():
                self._live_once()
        finally:
            for executor in self.executors.values():
                executor.stop(self.conf.shutdown_grace_seconds)
            self.bell.close()

    def _live_once(self) -> None:
        failures = 0
        while not self.stopping.is_set():
            try:
                lease = Lease(
                    "SchedulerJob",
                    heartbeat_seconds=self.conf.heartbeat_seconds,
                    lease_seconds=self.conf.lease_seconds,
                )
                with lease:
                    self.lease = lease
                    self._serve(lease)
                return
            except Exception as error:
                if not db.is_transient(error):
                    raise
                failures += 1
                self._wait_out(error, failures)

    def _serve(self, lease: Lease) -> None:
        executors = self.executors
        for executor in executors.values():
            executor.start(lease.job_id)
        log.info("Scheduler %s is at work (pid %s), executors: %s", lease.job_id, os.getpid(), ", ".join(executors))
        failures = 0
        self.bell.listen()
        while not self.stopping.is_set() and not self._is_over():
            if lease.lost:
                log.error("Scheduler %s lost its lease: it hands nothing out before it is a new job", lease.job_id)
                return
            try:
                self._pass(lease, executors)
                failures = 0
            except Exception as error:
                failures += 1
                self._wait_out(error, failures)

    def _is_over(self) -> bool:
        return 0 <= self.options.num_runs <= self.passes or self.options.until()

    def _pass(self, lease: Lease, executors: dict[str, Executor]) -> None:
        now, flags = probe()
        self._notice_jump(now)
        tick = Tick(
            now=now,
            job_id=lease.job_id,
            conf=self.conf,
            executors=executors,
            rng=self.rng,
            limit=self.conf.max_tis_per_query,
        )
        done = self.loop.tick(tick, flags)
        metrics.HEARTBEATS.labels("SchedulerJob").inc()
        self.passes += 1
        if done and not self._is_over():
            if not any(executor.slots_available() > 0 for executor in executors.values()):
                self._let_slots_gather(executors)
        elif not self._is_over():
            idle = self.options.idle_sleep_seconds
            longest = self.conf.idle_poll_seconds if idle is None else idle
            self._sleep(_sleep_seconds(tick, longest), executors)

    def _notice_jump(self, now: datetime) -> None:
        """When the database's clock was set, or this machine stood still, everybody looks silent, or alive for hours:
        whoever lives gets a period to say so in the new time."""
        monotonic = self.loop.monotonic()
        if self.last_clocks is not None:
            before, then = self.last_clocks
            jump = (now - before).total_seconds() - (monotonic - then)
            if abs(jump) > min(self.conf.lease_seconds, self.conf.task_heartbeat_timeout_seconds) / 4:
                log.warning("The clock went %+.0f s aside: nobody is counted as dead for a moment", jump)
                self.loop.put_off(JUDGES)
        self.last_clocks = now, monotonic

    def _sleep(self, seconds: float, executors: dict[str, Executor]) -> None:
        """Until the bell rings, an executor has news, or so long."""
        deadline = time.monotonic() + seconds
        while seconds > 0:
            files = {number: one for one in executors.values() if (number := one.fileno()) is not None}
            ready = self.bell.wait(seconds, list(files), self.stopping)
            if not ready or any(files[number].has_news() for number in ready):
                return
            seconds = deadline - time.monotonic()

    def _let_slots_gather(self, executors: dict[str, Executor]) -> None:
        """Every slot is taken: waits, but not for long, until a quarter is free, so that one pass serves several."""
        deadline = time.monotonic() + self.conf.full_pause_seconds
        wanted = max(1, self.conf.parallelism // 4)
        while not self.stopping.is_set() and (left := deadline - time.monotonic()) > 0:
            if any(executor.slots_available() >= wanted for executor in executors.values()):
                return
            files = [number for executor in executors.values() if (number := executor.fileno()) is not None]
            select.select(files, [], [], left)

    def _wait_out(self, error: Exception, failures: int) -> None:
        pause = min(_RETRY_LONGEST_SECONDS, _RETRY_FIRST_SECONDS * 2.0 ** min(failures, 10))
        log.warning("The scheduler could not go on (%s); again in %.1f s", str(error).strip() or type(error), pause)
        if failures > 1:
            # The database was away for everybody: whoever could not say that it lives gets a period to say so.
            self.loop.put_off(JUDGES)
        db.close()
        self.bell.close()
        self.stopping.wait(pause * self.rng.uniform(0.8, 1.2))

    # ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def _take_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_stop)
        inspection.answer_signal(self.describe)

    def _on_stop(self, number: int, _frame: FrameType | None) -> None:
        if self.stopping.is_set():
            os._exit(128 + number)
        self.stopping.set()
        self.bell.ring()

    def describe(self) -> list[str]:
        """What the loop is doing, for an operator who asks with SIGUSR2."""
        phase, now = self.loop.phase or "none: it sleeps, or waits for the database", time.monotonic()
        return [
            f"scheduler: {self.passes} passes; phase: {phase}",
            f"lease: {self.lease.describe() if self.lease else 'none'}",
            *(f"phase {name}: last run {now - at:.1f} s ago" for name, at in self.loop.last_run.items()),
            *(f"executor {name}: {executor.describe()}" for name, executor in self.executors.items()),
        ]


def _sleep_seconds(tick: Tick, longest: float) -> float:
    """How long an idle loop sleeps when nothing wakes it."""
    if tick.again:
        return _AGAIN_SECONDS
    return longest if tick.due_at is None else min(longest, max(0.0, (tick.due_at - tick.now).total_seconds()))


def make_executors(knobs: Conf, options: Options) -> dict[str, Executor]:
    """The executors of this process by name; the first is the default one. KeyError for a name that does not exist."""
    if options.executor:
        knobs = replace(knobs, executor=options.executor)
    return {name: EXECUTORS[name](knobs) for name in knobs.executors}


class Bell:
    """A sleep that a NOTIFY ends: a connection of its own that listens, and a pipe for this process's own hand."""

    def __init__(self) -> None:
        self._listener: Any = None
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)

    def ring(self) -> None:
        """Ends the sleep from a signal handler or another thread."""
        try:
            os.write(self._write, b"!")
        except BlockingIOError:
            pass  # it rings already

    def wait(self, seconds: float, files: Sequence[int], stopping: threading.Event) -> list[int]:
        """Sleeps at most so long, or until a file is readable. Notifications since the last sleep end it at once.

        Returns the files that ended it; none when anything else did.
        """
        ready: list[Any] = []
        if stopping.is_set():
            return []
        listener = self.listen()
        listener.poll()
        if not listener.notifies:
            ready, _, _ = select.select([listener, self._read, *files], [], [], seconds)
            if listener in ready:
                listener.poll()
            if self._read in ready:
                os.read(self._read, 4096)
        rung = bool(listener.notifies) or listener in ready or self._read in ready
        listener.notifies.clear()
        return [] if rung else ready

    def listen(self) -> Any:
        """The connection that listens, made if there is none: before the first pass, so that nothing is missed."""
        if self._listener is None or self._listener.closed:
            params = db.connection().get_connection_params()
            params.pop("cursor_factory", None)
            self._listener = psycopg2.connect(**params)
            self._listener.autocommit = True
            with self._listener.cursor() as handle:
                handle.execute(f"LISTEN {db.CHANNEL}")
        return self._listener

    def close(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None
