"""The runner: one selector loop over many attempts, with one database connection.

Hand-outs come in by :meth:`Runner.accept`; one pass (:meth:`Runner.step`) serves what the attempts say, writes the
outcomes that are ready, claims and starts what waits, and beats. Work that the database refuses for the moment stays in
memory and is tried again while the attempts go on.
"""

from __future__ import annotations

import logging
import signal
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.db import Error

from scheduler_app import attempt_log
from scheduler_app.engine import resources
from scheduler_app.log_store.keeper import Keeper
from scheduler_app.runner import answers, heartbeats, outcomes
from scheduler_app.runner.attempt import Attempt
from scheduler_app.runner.buffers import Buffer
from scheduler_app.runner.claims import Claim, claim, give_back, refuse
from scheduler_app.runner.contract import Key, Listener, Options
from scheduler_app.runner.database import Database, DatabaseAway
from scheduler_app.runner.decide import Decision
from scheduler_app.runner.identity import Identity
from scheduler_app.runner.last_words import last_words
from scheduler_app.runner.outcomes import BATCH, Report
from scheduler_app.runner.shutdown import Shutdown
from scheduler_app.runner.sources import Sources
from scheduler_app.supervisor.base import Exit
from scheduler_app.supervisor.child import Clocks
from scheduler_app.supervisor.children import Children
from scheduler_app.supervisor.events import Events
from scheduler_app.supervisor.memory import OutOfMemory
from scheduler_app.supervisor.zygote import DagFile
from scheduler_app.wire import WireError

log = logging.getLogger(__name__)

_TIDY_SECONDS = 5.0
#: A process that said its last word and is not gone after this is killed.
_LINGER_SECONDS = 5.0
#: However many rows are taken from attempts, they ask no more often than this whether they are still wanted.
_EARLY_BEAT_SECONDS = 0.1
#: What only the contents of a report can bring about: it would come again and again, and hold up the others.
_UNWRITABLE = (Error, ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)


class Runner:
    def __init__(
        self,
        events: Events,
        children: Children,
        clocks: Clocks,
        identity: Identity,
        options: Options,
        listener: Listener,
        sources: Sources | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self._events, self._children, self._clocks = events, children, clocks
        self._identity, self._options, self._listener = identity, options, listener
        #: None: DAG files are where the DAG processor found them
        self._sources = sources
        #: ships what the attempts write, where their logs do not stay on this machine
        self._keeper = keeper
        self._database = Database(clocks.monotonic)
        self._memory = OutOfMemory()
        #: how often it had killed when we last looked
        self._kills = self._memory.kills()
        self.shutdown = Shutdown(options.interrupted, clocks.monotonic)
        self._waiting: deque[Key] = deque()
        self._running: dict[Key, Attempt] = {}
        #: said how they ended, or are gone; not written yet
        self._ended: list[tuple[Attempt, Report]] = []
        #: written and gone: their slots are free, which the listener is not told yet
        self._over: list[Attempt] = []
        self._unanswered: list[tuple[Attempt, dict[str, Any]]] = []
        now = clocks.monotonic()
        self._next_beat = now + options.heartbeat_seconds
        self._last_beat = self._last_look = now
        self._next_tidy = now + _TIDY_SECONDS

    # What others call

    @property
    def attempts(self) -> int:
        """Processes that live."""
        return len(self._running)

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._running or self._ended or self._over)

    def describe(self) -> list[str]:
        """What it is doing, for an operator who asks with SIGUSR2."""
        now = self._clocks.monotonic()
        away = f"away, asked again in {self._database.retry_at - now:.1f} s" if self._database.away else "there"
        return [
            f"runner: {len(self._running)} of {self._options.slots} slots taken",
            f"runner: {len(self._waiting)} hand-outs wait, {len(self._ended)} ends are not written yet",
            f"database: {away}; last heartbeat {now - self._last_beat:.1f} s ago",
            *(
                f"attempt {attempt.claim.label}: pid {attempt.child.pid if attempt.child else None}"
                f"{f', told to stop: {attempt.stopped_for}' if attempt.stopped_for else ''}"
                for attempt in list(self._running.values())
            ),
        ]

    def accept(self, keys: Iterable[Key]) -> None:
        """Take hand-outs; those that are known already are not taken twice."""
        for key in keys:
            if key not in self._running and key not in self._waiting:
                self._waiting.append(key)

    def cancel(self, keys: Iterable[Key]) -> None:
        """Forget what has not begun, stop what has; its report is written if the row still wants it."""
        for key in keys:
            if key in self._waiting:
                self._waiting.remove(key)
                self._listener.done([key])
            elif key in self._running:
                self._stop(self._running[key], "the executor was told to cancel it")

    def look_now(self) -> None:
        """Somebody took task instances from their attempts: ask at once whether ours are among them."""
        self._next_beat = min(self._next_beat, self._last_look + _EARLY_BEAT_SECONDS)

    def withdraw(self, keys: Iterable[Key]) -> None:
        """Forget what has not begun; what has goes on."""
        self.cancel([key for key in keys if key in self._waiting])

    def step(self, longest_seconds: float) -> None:
        """One pass; sleeps at most so long when there is nothing to do."""
        self._database.next_pass()
        self._events.poll(self._sleep_seconds(longest_seconds))
        for part in (self._answer_again, self._write, self._release, self._start, self._watch):
            try:
                part()
            except DatabaseAway:
                continue
            except Exception:
                # One bad attempt or row must not end the others (I5); whatever it was, it is tried again in a moment.
                log.exception("The runner could not do its %s; it goes on", part.__name__)
                self._database.pause()

    def refuse_waiting(self) -> list[Key]:
        """The hand-outs that have not begun, forgotten: their rows go back to be scheduled."""
        keys = list(self._waiting)
        self._waiting.clear()
        return keys

    def stop_attempts(self, why: str, grace_seconds: float, *, shutdown: bool = False) -> None:
        """`shutdown`: it is ours, so that none of them is to blame."""
        for attempt in list(self._running.values()):
            if attempt.stop(why, self._clocks.monotonic(), grace_seconds) and shutdown:
                self.shutdown.interrupts(attempt)

    def end_children(self, why: str, *, shutdown: bool = False) -> None:
        """Kill every attempt now; returns when no process of theirs is left. Their reports wait to be written."""
        for attempt in self._running.values():
            if not attempt.stopped_for:
                attempt.stopped_for = why
                if shutdown:
                    self.shutdown.interrupts(attempt)
        self._children.stop()

    def give_back(self, keys: Sequence[Key]) -> None:
        """Unqueue hand-outs that never began. Raises DatabaseAway."""
        if keys:
            ids, fences = [key[0] for key in keys], [key[1] for key in keys]
            self._database.do(lambda now: give_back(ids, fences, now))

    # Attempts (attempt.Home)

    def asked(self, attempt: Attempt, request: dict[str, Any]) -> None:
        if attempt.child is None or attempt.child.done:
            return
        try:
            ok = self._database.do(lambda now: answers.answer(attempt.claim, attempt.buffer, request, now))
        except DatabaseAway:
            self._unanswered.append((attempt, request))
        except answers.Refusal as refusal:
            attempt.child.answer(request, error={"type": refusal.kind, "message": str(refusal)})
        except Exception as error:
            log.exception("The request %s of %s failed", request.get("op"), attempt.claim.label)
            attempt.child.answer(request, error={"type": type(error).__name__, "message": str(error)})
        else:
            attempt.child.answer(request, ok=ok)

    def said(self, attempt: Attempt) -> None:
        """Nothing of the task runs any more: the outcome need not wait until the kernel has put its process away."""
        attempt.reported = True
        self._ended.append((attempt, attempt.report(Exit(0))))
        if attempt.child is not None:
            attempt.child.linger(self._clocks.monotonic() + _LINGER_SECONDS)

    def over(self, attempt: Attempt, exit: Exit) -> None:
        self._running.pop(attempt.key, None)
        if not attempt.reported:
            attempt.reported = True
            self.shutdown.ended(attempt, exit)
            self._ended.append((attempt, attempt.report(exit, self._out_of_memory(attempt, exit))))
        elif attempt.written:
            self._over.append(attempt)

    def _out_of_memory(self, attempt: Attempt, exit: Exit) -> str:
        if exit.code != -signal.SIGKILL:
            return ""
        self._kills = self._memory.kills()
        return self._memory.since(attempt.kills)

    # The steps

    def _answer_again(self) -> None:
        if self._unanswered and not self._database.away:
            waiting, self._unanswered = self._unanswered, []
            for attempt, request in waiting:
                self.asked(attempt, request)

    def _write(self) -> None:
        """Outcomes of all attempts that have ended, up to BATCH rows a transaction."""
        # one that ended by itself all the same still says so: its end stays as a note
        foreign = [attempt for attempt, report in self._ended if attempt.foreign and report.outcome is None]
        if foreign:
            self._ended = [(one, report) for one, report in self._ended if not one.foreign or report.outcome]
            self._settle(foreign, {})
        while self._ended and not self._database.away:
            batch = self._ended[:BATCH]
            try:
                decided = self._write_batch([report for _, report in batch])
            except DatabaseAway:
                return
            del self._ended[: len(batch)]
            self._settle([attempt for attempt, _ in batch], decided)

    def _settle(self, attempts: Sequence[Attempt], decided: Mapping[int, Decision]) -> None:
        for attempt in attempts:
            attempt.written, attempt.decision = True, decided.get(attempt.claim.ti_id)
            if attempt.key not in self._running:
                self._over.append(attempt)

    def _release(self) -> None:
        """Tell whose slots are free: nothing of them is left to write, and no process."""
        if self._over:
            over, self._over = self._over, []
            self._listener.done([attempt.key for attempt in over])
            for attempt in over:
                _close(attempt)
                if self._keeper is not None and attempt.log_file is not None:
                    self._keeper.finish(attempt.log_file)

    def _write_batch(self, reports: list[Report]) -> dict[int, Decision]:
        """One transaction; when a row makes it fail, halves until that row stands alone."""
        try:
            return self._database.do(lambda now: outcomes.write(reports, now))
        except _UNWRITABLE as error:
            if len(reports) > 1:
                middle = len(reports) // 2
                return self._write_batch(reports[:middle]) | self._write_batch(reports[middle:])
            log.exception("The outcome of %s cannot be stored", reports[0].claim.label)
            return self._write_bare(reports[0], error)

    def _write_bare(self, report: Report, error: Exception) -> dict[int, Decision]:
        """What an attempt pushed cannot be stored: the try fails for that reason, without what it pushed."""
        text = f"What the task pushed cannot be stored: {str(error).strip().partition(chr(10))[0]}"
        bare = Report(report.claim, None, text)
        try:
            return self._database.do(lambda now: outcomes.write([bare], now))
        except _UNWRITABLE:
            log.exception("The end of %s cannot be written; it will count as lost", report.claim.label)
            return {}

    def _start(self) -> None:
        """Claim as many of the waiting as there are slots, and start them."""
        free = self._options.slots - len(self._running)
        if free <= 0 or not self._waiting or self._database.away:
            return
        keys = [self._waiting.popleft() for _ in range(min(free, len(self._waiting)))]
        try:
            claims = self._claim(keys)
        except DatabaseAway:
            self._waiting.extendleft(reversed(keys))
            return
        ours = {(item.ti_id, item.fence) for item in claims}
        if ours:
            self._listener.begun(sorted(ours))
        for item in claims:
            self._launch(item)
        refused = [key for key in keys if key not in ours]
        if refused:
            self._listener.done(refused)

    def _claim(self, keys: list[Key]) -> list[Claim]:
        ids, fences = [key[0] for key in keys], [key[1] for key in keys]
        try:
            return self._database.do(lambda now: claim(ids, fences, now, self._identity.worker))
        except DatabaseAway:
            raise
        except Exception as error:
            if len(keys) > 1:
                middle = len(keys) // 2
                return self._claim(keys[:middle]) + self._claim(keys[middle:])
            log.exception("Hand-out %s cannot be started", keys[0])
            reason = f"It cannot be started: {type(error).__name__}: {error}"[:2000]
            self._database.do(lambda now: refuse(ids, fences, now, reason))
            return []

    def _launch(self, item: Claim) -> None:
        attempt = Attempt(item, self, self._options.limits, self._kills)
        item.start["limits"] = resources.document(self._options.limits)
        file = attempt_log.path(
            self._options.log_folder, item.dag_id, item.run_id, item.task_id, item.map_index, item.try_number
        )
        self._running[attempt.key] = attempt
        if self._keeper is not None:
            attempt.log_file = file
            self._keeper.follow(file, item.fence)
        try:
            attempt.child = self._children.start(self._file(item), file, item.start, attempt)
        except DatabaseAway:
            self.over(attempt, Exit(None, "the database went away before it had given the DAG's files"))
        except (OSError, WireError, Error) as error:
            log.warning("%s cannot be started: %s", item.label, error)
            self.over(attempt, Exit(None, f"its process cannot be started: {error}"))

    def _file(self, item: Claim) -> DagFile:
        sources, source = self._sources, item.source
        if sources is None or source is None:
            return item.file
        return self._database.do(lambda now: sources.file(source))

    def _watch(self) -> None:
        """Time-outs, heartbeats, the state of the zygotes."""
        now = self._clocks.monotonic()
        grace = self._options.kill_grace_seconds
        for attempt in list(self._running.values()):
            attempt.watch_time(now, grace)
        self._children.tick()
        if now >= self._next_beat:
            self._next_beat, self._last_look = now + self._options.heartbeat_seconds, now
            self._beat(now)
        if now >= self._next_tidy:
            self._next_tidy = now + _TIDY_SECONDS
            self._children.tidy()
            self._kills = self._memory.kills()

    def _beat(self, monotonic: float) -> None:
        attempts = [attempt for attempt in self._running.values() if not attempt.reported]
        taken = [attempt.buffer.take() for attempt in attempts]
        beats = [attempt.beat(buffer) for attempt, buffer in zip(attempts, taken, strict=True)]
        try:
            pulse = self._database.do(lambda now: self._identity.beat(now) or heartbeats.beat(beats, now))
        except DatabaseAway:
            _put_back(attempts, taken)
            self._stop_if_silent(monotonic)
            return
        except Exception:
            log.exception("The heartbeat failed; what the attempts pushed waits for their outcomes")
            _put_back(attempts, taken)
            pulse = self._database.do(
                lambda now: heartbeats.beat([attempt.beat(Buffer()) for attempt in attempts], now)
            )
        self._last_beat = monotonic
        for attempt in attempts:
            key = attempt.claim.ti_id
            if key in pulse.foreign:
                attempt.foreign = True
                moved = (pulse.foreign[key] or "it was handed out again").rstrip(".")
                self._stop(attempt, f"its task instance has moved on: {moved}")
            elif key in pulse.restarting:
                self._stop(attempt, f"it was {pulse.restarting[key] or 'cleared'}")

    def _stop_if_silent(self, monotonic: float) -> None:
        """Without a heartbeat for so long, the scheduler may start the next try: ours must not go on beside it."""
        if monotonic - self._last_beat >= self._options.heartbeat_timeout_seconds:
            self.stop_attempts("the database was away for longer than task_heartbeat_timeout_seconds", 0.0)

    def _stop(self, attempt: Attempt, why: str) -> None:
        attempt.stop(why, self._clocks.monotonic(), self._options.kill_grace_seconds)

    def _sleep_seconds(self, longest: float) -> float:
        if self._over or ((self._ended or self._unanswered) and not self._database.away):
            return 0.0
        if self._waiting and len(self._running) < self._options.slots and not self._database.away:
            return 0.0
        now = self._clocks.monotonic()
        times = [self._next_beat, self._next_tidy]
        times += [attempt.deadline for attempt in self._running.values() if attempt.deadline is not None]
        if self._database.away:
            times.append(self._database.retry_at)
        due = self._children.due_seconds()
        return max(0.0, min(longest, min(times) - now, longest if due is None else due))


def _close(attempt: Attempt) -> None:
    if attempt.child is not None:
        attempt.child.log.write(*last_words(attempt.decision, attempt.stopped_for))
        attempt.child.close_log()


def _put_back(attempts: Sequence[Attempt], taken: Sequence[Buffer]) -> None:
    for attempt, buffer in zip(attempts, taken, strict=True):
        attempt.buffer.put_back(buffer)
