"""The DAG processor as a process: a job row, a loop, a way to stop. ``run_dag_processor`` is the entry."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from scheduler_app import inspection
from scheduler_app.conf import Conf, conf
from scheduler_app.models import db
from scheduler_app.models.lease import Lease, LeaseLost, claim_bundles
from scheduler_app.supervisor.environment import inherited
from scheduler_app.supervisor.parsing import ParsePool

from . import inventory
from .bundle import EXAMPLES, Bundle, bundles_of
from .callbacks import CallbackRunner
from .mails import Mailer
from .processor import Processor
from .retention import Retention

log = logging.getLogger(__name__)

#: A loop with children at work waits so long for one of them.
_BUSY_WAIT_SECONDS = 0.2
#: An idle parser gives its memory back.
_PARSER_IDLE_SECONDS = 60.0
_DATABASE_RETRY_SECONDS = 2.0


def run_dag_processor(
    stop: threading.Event | None = None,
    *,
    subdir: Path | None = None,
    num_parses: int = 0,
    callbacks: bool = True,
) -> None:
    """Runs until `stop` is set (without one: until SIGTERM or SIGINT).

    `subdir` narrows it to one folder or file; `num_parses` ends it when every file was parsed so often. A processor
    that lost its lease, or whose database was away, goes on as a new job.
    """
    stop = stop or _stop_on_signals()
    while not stop.is_set():
        try:
            _live_once(stop, subdir, num_parses, callbacks)
            return
        except LeaseLost as error:
            log.error("%s Another processor may have taken over; this one starts afresh.", error)
        except (db.DatabaseError, db.InterfaceError) as error:
            if not db.is_transient(error):
                raise
            log.warning("The database refused, trying again: %s", str(error).strip())
            db.close()
        stop.wait(_DATABASE_RETRY_SECONDS)


def _live_once(stop: threading.Event, subdir: Path | None, num_parses: int, callbacks: bool) -> None:
    """One job row's life."""
    values = conf()
    bundles = bundles_of(values, subdir)
    parser = ParsePool(
        values.parse_processes,
        values.parse_timeout_seconds,
        values.parse_memory_mb,
        environ=inherited(),
        monotonic=time.monotonic,
    )
    lease = Lease(
        "DagProcessorJob",
        heartbeat_seconds=values.heartbeat_seconds,
        lease_seconds=values.lease_seconds,
        folders={bundle.name: os.fspath(bundle.folder) for bundle in bundles},
    )
    with contextlib.closing(parser), lease, contextlib.ExitStack() as stack:
        runner = mailer = None
        if callbacks:
            runner = CallbackRunner(values, inherited(), lease.job_id, time.monotonic)
            stack.callback(runner.stop)
            mailer = Mailer(values, lease.job_id, time.monotonic)
        Loop(values, bundles, lease, parser, runner, mailer, num_parses=num_parses, whole=subdir is None).run(stop)


class Loop:
    """Claims bundles, scans them, parses what changed, runs callbacks, sends mails; one of each at its time."""

    def __init__(
        self,
        values: Conf,
        bundles: list[Bundle],
        lease: Lease,
        parser: ParsePool,
        runner: CallbackRunner | None,
        mailer: Mailer | None = None,
        *,
        num_parses: int,
        whole: bool,
    ) -> None:
        self._conf, self._bundles, self._lease = values, bundles, lease
        self._parser, self._runner, self._mailer = parser, runner, mailer
        self._rounds_left, self._limited, self._whole = num_parses, num_parses > 0, whole
        self._retention = Retention(values, time.monotonic) if whole else None
        self._processor = Processor(values, parser, lease.guard)
        self._next_claim = self._next_scan = self._next_probe = 0.0
        self._parser_used = time.monotonic()
        self._standing_by = False

    def run(self, stop: threading.Event) -> None:
        inspection.answer_signal(self.describe)
        while not stop.is_set():
            self._lease.check()
            try:
                if self._turn(stop):
                    break
            except LeaseLost:
                raise
            except Exception as error:
                if db.is_transient(error):
                    log.warning("The database refused, trying again: %s", str(error).strip())
                else:
                    log.exception("A step failed; the others go on")
                db.close()
                stop.wait(_DATABASE_RETRY_SECONDS)
        if self._runner is not None:
            self._runner.drain(self._conf.stop_seconds / 2, db.clock)
        if self._mailer is not None:
            self._mailer.drain(self._conf.stop_seconds / 4, db.clock, time.sleep)

    def describe(self) -> list[str]:
        """What it is doing, for an operator who asks with SIGUSR2."""
        clock, calling = time.monotonic(), self._runner is not None and self._runner.busy
        return [
            f"DAG processor: bundles {', '.join(sorted(self._processor.folders)) or 'none, standing by'}",
            f"lease: {self._lease.describe()}",
            f"parses files: {self._processor.busy}; runs callbacks: {calling}",
            f"next look at the files in {max(0.0, self._next_scan - clock):.1f} s",
        ]

    def _turn(self, stop: threading.Event) -> bool:
        """One pass; whether all is done (`num_parses`)."""
        clock = time.monotonic()
        steps = (self._claim_at_its_time, self._probe, self._look, self._retain, self._submit, self._call)
        went_well = [self._tried(step, clock) for step in steps]
        self._wait(stop, clock)
        if not all(went_well):
            stop.wait(_DATABASE_RETRY_SECONDS)
        return self._limited and self._rounds_left <= 0 and not self._processor.busy and bool(self._processor.folders)

    def _tried(self, step: Callable[[float], object], clock: float) -> bool:
        """Whether a step went well. One that fails each time, over some row, keeps no other from its own (I5)."""
        try:
            step(clock)
        except Exception as error:
            if isinstance(error, LeaseLost) or db.is_transient(error):
                raise
            log.exception("The step %s failed; the others go on", step.__name__)
            db.close()
            return False
        return True

    def _claim_at_its_time(self, clock: float) -> None:
        if clock >= self._next_claim:
            self._next_claim = clock + self._conf.lease_seconds / 3
            self._claim(db.clock())

    def _probe(self, clock: float) -> None:
        if clock >= self._next_probe:
            self._next_probe = clock + self._conf.idle_poll_seconds
            self._serve_people_and_runs()

    def _look(self, clock: float) -> None:
        if self._looks_now(clock):
            self._next_scan = clock + self._conf.dag_dir_scan_seconds
            self._processor.look(db.clock(), every_file=self._limited)
            self._rounds_left -= 1

    def _retain(self, clock: float) -> None:
        if self._retention is not None and self._owns_first():
            self._retention.step(db.clock())

    def _submit(self, clock: float) -> None:
        self._processor.submit()

    def _call(self, clock: float) -> None:
        """Serve the callbacks that run."""
        if self._runner is not None:
            self._runner.step(0.0 if self._processor.busy else _BUSY_WAIT_SECONDS, db.clock)

    def _owns_first(self) -> bool:
        """One processor of all sees to what is old: whoever owns the first bundle."""
        return bool(self._bundles) and self._bundles[0].name in self._processor.folders

    def _serve_people_and_runs(self) -> None:
        """What somebody waits for: a parse by a person, a data interval, callbacks, mails."""
        found = inventory.probe(self._processor.folders)
        if found.parse_requests:
            self._processor.take_requests(found.now)
        if found.questions:
            self._processor.take_questions(found.now)
        if found.due_callbacks and self._runner is not None:
            self._runner.start_due(list(self._processor.folders), found.now)
        if self._mailer is not None:
            self._mailer.step(found.now)
            if found.due_mails:
                self._mailer.start_due(found.now)

    def _looks_now(self, clock: float) -> bool:
        if self._limited:
            return self._rounds_left > 0 and not self._processor.busy and bool(self._processor.folders)
        return clock >= self._next_scan

    def _wait(self, stop: threading.Event, clock: float) -> None:
        """Serves the children that are at work; without any, sleeps until something is due."""
        calling = self._runner is not None and self._runner.busy
        if self._processor.busy:
            self._parser_used = clock
            self._processor.collect(_BUSY_WAIT_SECONDS, db.clock)
        elif not calling:
            if clock - self._parser_used > _PARSER_IDLE_SECONDS:
                self._parser.stop()
                self._parser_used = float("inf")
            due = min(self._next_probe, self._next_claim, self._next_scan)
            stop.wait(max(0.0, due - time.monotonic()))

    def _claim(self, now: datetime) -> None:
        wanted = [bundle.name for bundle in self._bundles]
        mine = claim_bundles(self._lease.job_id, wanted, now, self._conf.lease_seconds)
        others = sorted(set(wanted) - mine)
        if others and not self._standing_by:
            log.info("Standing by: another processor owns %s", ", ".join(others))
        self._standing_by = bool(others)
        news = mine - self._processor.folders.keys()
        self._processor.own([bundle for bundle in self._bundles if bundle.name in mine])
        if self._runner is not None:
            self._runner.give_back_orphans(now)
        if news:
            self._next_scan = 0.0
            self._retire_examples(now)

    def _retire_examples(self, now: datetime) -> None:
        """Examples that are switched off leave the lists, unless another processor shows them."""
        if not self._whole or EXAMPLES in {bundle.name for bundle in self._bundles}:
            return
        if EXAMPLES in inventory.owned_bundles(now, self._conf.lease_seconds):
            return
        removed = inventory.remove_bundle(EXAMPLES, self._lease.guard)
        if removed:
            log.info("%d example DAGs are switched off (SCHEDULER_LOAD_EXAMPLES)", removed)


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    handler: Callable[[int, object], None] = lambda number, frame: stop.set()  # noqa: E731
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)
    return stop
