"""What a Celery worker does: its threads hand messages to one runner process, and wait until their attempts are over.

A message is acknowledged when its hand-out is claimed, so neither a broker's consumer time-out nor its visibility
time-out matters to a task that runs for days; what was claimed is watched by heartbeats. Loaded by the worker alone.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import select
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery import Task, current_app, shared_task, signals
from celery.concurrency.thread import TaskPool
from celery.exceptions import Reject
from celery.worker import state as worker_state
from celery.worker.control import control_command
from celery.worker.request import Request

from scheduler_app.conf import Conf, conf
from scheduler_app.executors.base import HandOut
from scheduler_app.executors.celery_app import STOP, TASK
from scheduler_app.executors.local import LocalExecutor

log = logging.getLogger(__name__)

Key = tuple[int, int]

#: A message that finds every slot taken goes back to the broker after this, for another worker.
_SLOT_SECONDS = 0.5
#: So does one that the runner could not claim, because the database is away: a broker ends the connection of whoever
#: holds a message for long (RabbitMQ's consumer time-out), and with it the worker.
_CLAIM_SECONDS = 5.0
_POLL_SECONDS = 0.5
_FORGOTTEN = 1000
_BEGUN, _DONE, _LOST = "begun", "done", "lost"


class Busy(Exception):
    """The hand-out was not taken, and goes back to the broker; the text says why."""


class WorkerRunner(LocalExecutor):
    """The runner of a worker. `tell` hears what becomes of each hand-out."""

    def __init__(self, values: Conf, slots: int, detail: dict[str, Any], tell: Callable[[Key, str], None]) -> None:
        arguments = ["--executor", "CeleryExecutor", "--job-type", "CeleryWorkerJob", "--detail", json.dumps(detail)]
        if values.worker_sources == "database":
            arguments.append("--own-sources")
        super().__init__(values, slots, arguments)
        self._tell = tell

    def withdraw(self, keys: Sequence[Key]) -> None:
        """What has not begun is told as done."""
        self._send({"op": "withdraw", "hand_outs": [list(key) for key in keys]})

    def begun(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._tell(key, _BEGUN)

    def done(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._tell(key, _DONE)


class Hands:
    """Shares one runner among threads: :meth:`run` is called by many, the runner by a thread of its own."""

    def __init__(self, values: Conf, slots: int, detail: dict[str, Any]) -> None:
        self._runner = WorkerRunner(values, slots, detail, self._tell)
        self._changed = threading.Condition()
        self._free = slots
        self._heard: dict[Key, queue.SimpleQueue[str]] = {}
        self._fresh: list[Key] = []
        self._cancelled: deque[Key] = deque()
        self._withdrawn: deque[Key] = deque()
        #: cancelled while they waited for a slot, or before they came
        self._forgotten: deque[Key] = deque(maxlen=_FORGOTTEN)
        self._stopping = False
        self._grace_seconds = 0.0
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._thread = threading.Thread(target=self._serve, name="hands", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def run(self, key: Key, claimed: Callable[[], None]) -> None:
        """Returns when the attempt is over, or when the claim was refused. Raises Busy."""
        with self._changed:
            if key in self._heard:
                return  # delivered twice, and it runs here
            if not self._changed.wait_for(lambda: self._free > 0 or self._stopping, _SLOT_SECONDS) or self._stopping:
                raise Busy("No slot is free here.")
            if key in self._forgotten:
                return
            self._free -= 1
            heard = self._heard[key] = queue.SimpleQueue()
            self._fresh.append(key)
        self._ring()
        try:
            said = self._first_word(key, heard)
            if said == _LOST:
                raise Busy("It was not claimed: the database is away, or the runner ended.")
            if said == _BEGUN:
                claimed()
                heard.get()
        finally:
            with self._changed:
                del self._heard[key]
                self._free += 1
                self._changed.notify()

    def _first_word(self, key: Key, heard: queue.SimpleQueue[str]) -> str:
        """Begun, done (it was refused) or lost: not claimed in time, or the runner died."""
        try:
            return heard.get(timeout=_CLAIM_SECONDS)
        except queue.Empty:
            self._withdrawn.append(key)
            self._ring()
        said = heard.get()
        return _LOST if said == _DONE else said

    def cancel(self, keys: Iterable[Key]) -> None:
        """Called by Celery's main thread, which a signal may interrupt: no lock is taken, here and in :meth:`stop`."""
        for key in keys:
            (self._cancelled if key in self._heard else self._forgotten).append(key)
        self._ring()

    def stop(self, grace_seconds: float) -> None:
        """Ends the runner, and what it runs after so long; waits for it."""
        self._grace_seconds, self._stopping = grace_seconds, True
        self._ring()
        self._thread.join()

    def _tell(self, key: Key, word: str) -> None:
        heard = self._heard.get(key)
        if heard is not None:
            heard.put(word)

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def _serve(self) -> None:
        self._runner.start(0)
        while not self._stopping:
            number = self._runner.fileno()
            ready, _, _ = select.select([self._read, *([] if number is None else [number])], [], [], _POLL_SECONDS)
            if self._read in ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._read, 4096)
            self._pass()
        self._runner.stop(self._grace_seconds)
        self._pass()
        for heard in list(self._heard.values()):
            heard.put(_LOST)

    def _pass(self) -> None:
        withdrawn = [self._withdrawn.popleft() for _ in range(len(self._withdrawn))]
        with self._changed:
            fresh, self._fresh = self._fresh, []
        for key in withdrawn:
            if key in fresh:  # there is no runner to ask
                fresh.remove(key)
                self._tell(key, _LOST)
        if withdrawn:
            self._runner.withdraw(withdrawn)
        # Refused while the runner is being started again: they keep their slots and are offered at the next pass.
        refused = self._runner.accept([HandOut(*key) for key in fresh])
        with self._changed:
            self._fresh = [(one.ti_id, one.fence) for one in refused] + self._fresh
        if self._cancelled:
            self._runner.cancel([HandOut(*self._cancelled.popleft()) for _ in range(len(self._cancelled))])
        for lost in self._runner.lost():
            self._tell((lost.ti_id, lost.fence), _LOST)


#: Of this worker process.
_hands: Hands | None = None


class RunnerPool(TaskPool):
    """Threads that wait for attempts, and some more for messages that find no slot; `limit` is the attempts at once."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.executor = ThreadPoolExecutor(max_workers=2 * self.limit, thread_name_prefix="hand-out")

    def on_start(self) -> None:
        global _hands
        detail = {"queues": sorted(self.app.amqp.queues.consume_from), "worker": self.options["initargs"][1]}
        _hands = Hands(conf(), self.limit, detail)
        _hands.start()

    def on_stop(self) -> None:
        """A warm shutdown (SIGTERM) lets attempts end by themselves, for as long as they may; a cold one (SIGQUIT)
        interrupts them."""
        grace = conf().celery_shutdown_grace_seconds
        if worker_state.should_terminate or grace:
            self._stop_hands(0 if worker_state.should_terminate else grace)
        super().on_stop()
        self._stop_hands()

    def on_terminate(self) -> None:
        self._stop_hands()

    def terminate_job(self, pid: int, signal: int | None = None) -> None:
        """Celery cancels what nobody has acknowledged: it waits for a slot, and goes back by itself."""

    def _stop_hands(self, grace_seconds: float = 0) -> None:
        if _hands is not None:
            _hands.stop(grace_seconds)


@signals.celeryd_init.connect
def _check_command(options: dict[str, Any] | None = None, **_: Any) -> None:
    """Ends a worker that could not work, with what to do about it."""
    if not current_app.conf.broker_url:
        sys.exit("This worker has no broker: set SCHEDULER_CELERY_BROKER_URL.")
    pool = (options or {}).get("pool") or (options or {}).get("pool_cls")
    if pool is not None and not (isinstance(pool, type) and issubclass(pool, RunnerPool)):
        sys.exit("This worker brings its own pool, with a process for each task: start it without --pool (-P).")


class HandOutRequest(Request):
    """A message that may be answered twice: what a lost connection brings again has the id of the first delivery.

    Kombu raises at the second answer, in the loop of the worker, which ends by that.
    """

    def __init__(self, message: Any, **options: Any) -> None:
        super().__init__(message, **options)
        for name in ("ack", "reject"):
            setattr(message, name, _once(message, getattr(message, name)))


def _once(message: Any, answer: Callable[..., None]) -> Callable[..., None]:
    def call(*args: Any, **options: Any) -> None:
        if not message.acknowledged:
            answer(*args, **options)

    return call


@shared_task(name=TASK, bind=True, acks_late=True, ignore_result=True, Request=HandOutRequest)
def hand_out(self: Task, ti_id: int, fence: int) -> None:
    """Start one hand-out, and wait for its end."""
    request_id = self.request.id
    if _hands is None:
        raise Reject("This worker has no runner.", requeue=True)
    try:
        _hands.run((ti_id, fence), lambda: _acknowledge(request_id))
    except Busy as error:
        raise Reject(str(error), requeue=True) from None


def _acknowledge(request_id: str) -> None:
    """Now, not at the end. None when the connection was lost meanwhile: the fence refuses what comes again."""
    request = worker_state.requests.get(request_id)
    if request is not None:
        request.acknowledge()


@control_command(name=STOP, args=[("keys", list)])
def stop_hand_outs(state: Any, keys: list[list[int]]) -> dict[str, str]:
    """Stop these hand-outs, where they run."""
    if _hands is not None:
        _hands.cancel((ti_id, fence) for ti_id, fence in keys)
    return {"ok": "stopping"}
