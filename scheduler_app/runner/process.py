"""The runner's process: ``python -m scheduler_app.runner.process --control FD --slots N``, started by an executor.

It talks to the executor over a socket (``scheduler_app.wire`` frames). It gets ``accept``, ``cancel`` and ``withdraw``
(forget what has not begun; hand_outs: pairs of id and fence) and ``stop`` (drain_seconds); it sends ``ready`` (job_id),
``begun`` and ``done`` (hand_outs).
When the executor is gone it kills every attempt at once, says in their rows what happened if the database lets it, and
ends.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import socket
from collections.abc import Sequence
from typing import Any

from scheduler_app import proc
from scheduler_app.wire import Channel

log = logging.getLogger(__name__)

#: Longest sleep of a pass; anything that matters ends it earlier.
_LONGEST_SECONDS = 1.0
#: After the executor's death: our last words to the database may take so long.
_LAST_WORDS_SECONDS = 1.2
#: What a runner may take at its end to ship the last lines of its logs; the next one on this machine ships the rest.
_LOGS_SECONDS = 5.0
#: Who started us, by the executor's name; anybody else is called the scheduler.
_OWNERS = {"CeleryExecutor": "Celery worker"}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="scheduler_app.runner.process", description=__doc__)
    parser.add_argument("--control", type=int, required=True, help="file descriptor of the socket to the executor")
    parser.add_argument("--parent", type=int, required=True, help="process id of the executor")
    parser.add_argument("--slots", type=int, required=True, help="attempts at once")
    parser.add_argument("--executor", default="LocalExecutor", help="class of the executor, for the Job row")
    parser.add_argument("--job-type", default="LocalTaskJob", help="type of the Job row")
    parser.add_argument("--detail", type=json.loads, default={}, help="JSON object: more of what the Job row says")
    parser.add_argument("--own-sources", action="store_true", help="take DAG files from the database")
    options = parser.parse_args(arguments)
    os.set_inheritable(options.control, False)
    # Until the loop watches the socket nobody here would notice: on a busy machine Django's import takes seconds.
    proc.die_with_parent(options.parent)
    import django

    django.setup()
    proc.set_name("runner")
    # Ctrl-C and SIGTERM are for the executor, which tells us what to do; its end ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    runner = RunnerProcess(Channel(socket.socket(fileno=options.control)), options)
    signal.signal(signal.SIGTERM, lambda number, frame: runner.terminated())
    runner.run()


class RunnerProcess:
    """Implements ``runner.loop.Listener``: what the runner tells goes to the executor."""

    def __init__(self, control: Channel, options: argparse.Namespace) -> None:
        from scheduler_app.conf import conf
        from scheduler_app.models import db
        from scheduler_app.runner import assemble
        from scheduler_app.runner.database import Database
        from scheduler_app.runner.identity import Identity
        from scheduler_app.runner.stop_bell import StopBell
        from scheduler_app.supervisor.events import Events

        values = conf()
        self._control, self._values = control, values
        self._clocks = assemble.clocks()
        self._events = Events()
        self._children = assemble.children(values, self._events)
        slots = options.slots
        self._owner = _OWNERS.get(options.executor, "scheduler")
        self._identity = Identity(options.job_type, options.executor, {**options.detail, "slots": slots})
        self._database = Database(self._clocks.monotonic)
        self._keeper = assemble.keeper(values, is_worker=options.job_type == "CeleryWorkerJob")
        self._runner = assemble.runner(
            values,
            self._events,
            self._children,
            self._identity,
            slots,
            self,
            own_sources=options.own_sources,
            keeper=self._keeper,
        )
        self._bell = StopBell(self._events, {db.STOP_CHANNEL: self._runner.look_now})
        self._drain_until: float | None = None
        self._stopping = False
        self._gone = False

    def run(self) -> None:
        from scheduler_app import inspection

        inspection.answer_signal(self._runner.describe)
        self._events.watch(self._control, self._message, self._executor_gone)
        proc.outlive_parent()
        self._children.preload()
        self._begin()
        self._keeper.start()
        while not self._gone and not (self._stopping and self._runner.idle):
            self._bell.arm()
            self._runner.step(_LONGEST_SECONDS)
            if self._drain_until is not None and self._clocks.monotonic() >= self._drain_until:
                self._drain_until = None
                why = f"the {self._owner} was shut down"
                self._runner.stop_attempts(why, min(self._values.kill_grace_seconds, 5.0), shutdown=True)
        if self._gone:
            self._abandon()
        else:
            self._end()
            self._keeper.stop(_LOGS_SECONDS)

    def terminated(self) -> None:
        """SIGTERM: what it does to attempts, if they got it too, is to be told from what they did themselves."""
        self._runner.shutdown.told()

    def done(self, keys: Sequence[tuple[int, int]]) -> None:
        self._tell("done", keys)

    def begun(self, keys: Sequence[tuple[int, int]]) -> None:
        self._tell("begun", keys)

    def _tell(self, op: str, keys: Sequence[tuple[int, int]]) -> None:
        if keys and not self._control.closed:
            self._events.send(self._control, {"op": op, "hand_outs": [list(key) for key in keys]})

    def _begin(self) -> None:
        """The Job row; the database may still be starting."""
        from scheduler_app.runner.database import DatabaseAway

        while not self._gone:
            self._database.next_pass()
            try:
                job_id = self._database.do(self._identity.begin)
            except DatabaseAway:
                self._events.poll(0.2)
            else:
                self._events.send(self._control, {"op": "ready", "job_id": job_id, "pid": os.getpid()})
                return

    def _message(self, message: dict[str, Any]) -> None:
        keys = [(ti_id, fence) for ti_id, fence in message.get("hand_outs", ())]
        if message["op"] == "accept":
            self._runner.accept(keys)
        elif message["op"] == "cancel":
            self._runner.cancel(keys)
        elif message["op"] == "withdraw":
            self._runner.withdraw(keys)
        elif message["op"] == "stop":
            self._stopping = True
            self._drain_until = self._clocks.monotonic() + message["drain_seconds"]
            self._hand_back()

    def _hand_back(self) -> None:
        from scheduler_app.runner.database import DatabaseAway

        keys = self._runner.refuse_waiting()
        try:
            self._runner.give_back(keys)
        except DatabaseAway:
            log.warning("%d hand-outs could not be given back; the next scheduler finds them", len(keys))
        self.done(keys)

    def _executor_gone(self, why: str) -> None:
        self._gone = True

    def _abandon(self) -> None:
        """Nobody may be left two seconds from now; the rows come second."""
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, _LAST_WORDS_SECONDS)
        why = "was killed while it shut down" if self._stopping else "died"
        self._runner.end_children(f"the {self._owner} {why}", shutdown=self._stopping)
        self._hand_back()
        self._runner.step(0)
        self._end("failed")

    def _end(self, state: str = "success") -> None:
        from scheduler_app.runner.database import DatabaseAway

        self._children.stop()
        self._database.next_pass()  # it ends now, not when it began
        try:
            self._database.do(lambda now: self._identity.end(now, state))
        except DatabaseAway:
            log.warning("The end of this runner is not recorded; its lease will run out")


if __name__ == "__main__":
    main()
