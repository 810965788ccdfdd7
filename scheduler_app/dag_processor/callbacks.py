"""Runs callbacks of DAGs and tasks: each in a child of its own, at least once, until it ran or was given up.

What the author's function raises is its result: stored, logged, not tried again. An attempt that could not run it
(its process died, took too long, the file did not import) is tried again with a growing wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scheduler_app import attempt_log, metrics
from scheduler_app.conf import Conf
from scheduler_app.log_store import stores
from scheduler_app.log_store.keeper import Keeper
from scheduler_app.log_store.pieces import CALLBACK
from scheduler_app.models import Callback, db
from scheduler_app.runner import answers
from scheduler_app.runner.buffers import Buffer
from scheduler_app.runner.claims import Claim, describe_runs, describe_tasks
from scheduler_app.runner.decide import storable
from scheduler_app.supervisor.base import Base, Exit
from scheduler_app.supervisor.child import Child, Clocks
from scheduler_app.supervisor.events import Events

log = logging.getLogger(__name__)

_MEGABYTE = 1024 * 1024
#: An idle base gives its memory back.
_BASE_IDLE_SECONDS = 60.0
#: What it may take at its end to ship the last lines of logs.
_LOGS_SECONDS = 5.0


class CallbackRunner:
    """A few callbacks at a time, without a thread: ``start_due`` takes rows, ``step`` serves the children."""

    def __init__(self, conf: Conf, environ: Mapping[str, str], job_id: int, monotonic: Callable[[], float]) -> None:
        self._conf, self._environ, self._job_id = conf, environ, job_id
        self._clocks = Clocks(monotonic, lambda: datetime.now(UTC))
        self._events = Events()
        self._base: Base | None = None
        self._used_at = monotonic()
        self._running: list[_Running] = []
        self._ended: list[_Running] = []
        store = stores.of_writers(conf, is_worker=False)
        self._keeper = Keeper(conf, store, CALLBACK, self._clocks.wall, monotonic)
        self._keeper.start()

    @property
    def busy(self) -> bool:
        return bool(self._running or self._ended)

    def start_due(self, bundle_names: list[str], now: datetime) -> int:
        """Takes due callbacks of these bundles and starts them; how many."""
        free = self._conf.callback_processes - len(self._running)
        if free <= 0 or not bundle_names:
            return 0
        rows = Callback.objects.claim_due(bundle_names, self._job_id, now, free)
        for row in rows:
            self._start(row)
        return len(rows)

    def give_back_orphans(self, now: datetime) -> int:
        """Callbacks of dead processes become due again."""
        return Callback.objects.give_back_orphans(now, self._conf.lease_seconds)

    def step(self, timeout_seconds: float, clock: Callable[[], datetime]) -> int:
        """Serves the children for at most so long and stores what has ended; how many."""
        if not self.busy:
            self._rest()
            return 0
        self._used_at = self._clocks.monotonic()
        self._events.poll(0 if self._ended else timeout_seconds)
        for running in self._running:
            running.enforce(self._clocks.monotonic())
        count = 0
        while self._ended:
            self._store(self._ended[0], clock())
            del self._ended[0]
            count += 1
        return count

    def drain(self, seconds: float, clock: Callable[[], datetime]) -> None:
        """Lets what runs come to its end, for at most so long: a callback that is cut off runs again."""
        deadline = self._clocks.monotonic() + seconds
        while self.busy and (left := deadline - self._clocks.monotonic()) > 0:
            self.step(min(left, 0.2), clock)

    def stop(self) -> None:
        """Ends every child; what they were running is due again when our lease is over or the job row ends."""
        if self._base is not None:
            self._base.stop()
            self._base = None
        self._events.close()
        self._keeper.stop(_LOGS_SECONDS)

    # ── one callback ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, row: Callback) -> None:
        running = _Running(row, self._conf.callback_timeout_seconds)
        running.home = self._over
        self._running.append(running)
        try:
            running.claim = describe(row)
            if running.claim is None:
                raise LookupError("its task instance is gone")
            self._fork(running, running.claim)
        except (db.DatabaseError, db.InterfaceError) as error:
            db.close()
            running.ended(running.child, Exit(None, f"it could not be started: {str(error).strip()}"))
        except Exception as error:
            # Whatever a row holds: it is given up after its attempts, and keeps nobody's place until then.
            running.ended(running.child, Exit(None, f"it could not be started: {error}"))

    def _fork(self, running: _Running, claim: Claim) -> None:
        base = self._running_base()
        file = running.log_file = log_file(self._conf.log_folder, claim, running.row)
        self._keeper.follow(file, claim.fence)
        child = Child(
            self._events,
            file,
            self._conf.max_message_mb * _MEGABYTE,
            self._clocks,
            running,
        )
        running.child = child
        try:
            start, error = start_document(claim, running.row)
            child.send(start)
        except Exception:
            child.abandon()
            raise
        key = base.fork(
            "callback",
            child.take_fds(),
            child.exited,
            lambda pid: child.forked(pid, lambda number: base.kill(key, number)),
            file=claim.file.path,
            folder=claim.file.folder,
            kind=running.row.kind.removeprefix("task_").removeprefix("dag_"),
            task_id=claim.task_id or None,
            error=error,
            max_bytes=self._conf.max_message_mb * _MEGABYTE,
        )

    def _over(self, running: _Running) -> None:
        if running in self._running:
            self._running.remove(running)
            self._ended.append(running)

    def _store(self, running: _Running, now: datetime) -> None:
        row = running.row
        error, again = running.verdict()
        error = None if error is None else storable(error)
        next_at = None
        if error is not None and again and row.attempts < self._conf.callback_attempts:
            next_at = now + timedelta(seconds=self._conf.callback_retry_seconds * 2 ** (row.attempts - 1))
        try:
            Callback.objects.end(row, now, error=error, next_at=next_at)
        except db.DatabaseError as refused:
            if db.is_transient(refused):
                raise  # it is stored by a later step: our job may live for weeks, and nobody else looks at the row
            log.warning("The end of callback %s could not be stored: %s", row, str(refused).strip())
            db.close()
        metrics.CALLBACKS_ENDED.labels("success" if error is None else "again" if next_at else "failed").inc()
        if error is not None:
            log.warning("Callback %s failed%s: %s", row, " and is tried again" if next_at else "", error)
        running.close(error)
        if running.log_file is not None:
            self._keeper.finish(running.log_file)

    def _running_base(self) -> Base:
        if self._base is None or not self._base.alive:
            if self._base is not None:
                self._base.reap()
            self._base = Base(self._events, self._environ, "")
        return self._base

    def _rest(self) -> None:
        if self._base is not None and self._clocks.monotonic() - self._used_at > _BASE_IDLE_SECONDS:
            self._base.stop()
            self._base = None


class _Running:
    """One callback in its child; a ``supervisor.child.Watcher``."""

    def __init__(self, row: Callback, timeout_seconds: float) -> None:
        self.row, self._timeout_seconds = row, timeout_seconds
        self.claim: Claim | None = None
        self.child: Child | None = None
        self.log_file: Path | None = None
        self.home: Callable[[_Running], None] = lambda running: None
        self._outcome: dict[str, Any] | None = None
        self._exit_text = ""
        self._killed = ""
        self._buffer = Buffer()

    def message(self, child: Child, message: dict[str, Any]) -> None:
        if message.get("op") == "outcome":
            self._outcome = message
        elif "id" in message and self.claim is not None:
            self._answer(child, self.claim, message)

    def _answer(self, child: Child, claim: Claim, request: dict[str, Any]) -> None:
        try:
            child.answer(request, ok=answers.answer(claim, self._buffer, request, db.clock()))
        except answers.Refusal as refusal:
            child.answer(request, error={"type": refusal.kind, "message": str(refusal)})
        except Exception as error:
            # Whatever it is: without an answer the callback would wait until it is killed.
            if isinstance(error, (db.DatabaseError, db.InterfaceError)):
                db.close()
            child.answer(request, error={"type": type(error).__name__, "message": str(error).strip()})

    def ended(self, child: Child | None, exit: Exit) -> None:
        self._exit_text = self._killed or exit.text
        self.home(self)

    def enforce(self, monotonic: float) -> None:
        """Kill a callback that takes too long, with everything that it started."""
        child = self.child
        if child is not None and not self._killed and monotonic - child.started_at >= self._timeout_seconds:
            self._killed = f"it took longer than {self._timeout_seconds:g} s (callback_timeout_seconds)"
            child.kill_at = monotonic
            child.signal(9)

    def verdict(self) -> tuple[str | None, bool]:
        """The error, if any, and whether another attempt makes sense."""
        if self._outcome is None or self._killed:
            return self._exit_text[:1].upper() + self._exit_text[1:] + ".", True
        if self._outcome["state"] == "success":
            return None, False
        error = self._outcome.get("error") or {}
        return f"{error.get('type', 'Error')}: {error.get('message', '')}", self._outcome.get("retry", True)

    def close(self, error: str | None) -> None:
        if self.child is not None and self.child.log.fd >= 0:
            level, text = ("info", "ran") if error is None else ("error", f"failed: {error}")
            self.child.log.write(level, "callback", f"The callback {self.row.kind} {text}")
            self.child.close_log()


def describe(row: Callback) -> Claim | None:
    """What the callback is about, as its task instance or run stands now."""
    if row.task_instance_id is not None:
        return next(iter(describe_tasks([row.task_instance_id])), None)
    return next(iter(describe_runs([row.dag_run_id])), None) if row.dag_run_id is not None else None


def start_document(claim: Claim, row: Callback) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The ``start`` document of the callback's child, for the try that it is about, and the error of that try."""
    start = {**claim.start, "ti": {**claim.start["ti"]}}
    if row.try_number is not None:
        # The next try may have begun meanwhile.
        start["ti"]["try_number"] = row.try_number
    start["reason"] = row.payload.get("reason")
    start["late"] = row.payload.get("late")
    error = row.payload.get("error")
    if isinstance(error, str):
        error = {"type": "", "message": error, "traceback": None}
    return start, error


def log_file(folder: Path, claim: Claim, row: Callback) -> Path:
    """The log of the try for a task's callback, a file beside the tasks' folders for one of the run."""
    if claim.task_id:
        number = row.try_number if row.try_number is not None else claim.try_number
        return attempt_log.path(folder, claim.dag_id, claim.run_id, claim.task_id, claim.map_index, number)
    return attempt_log.callback_path(folder, claim.dag_id, claim.run_id, row.kind)
