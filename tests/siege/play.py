"""One siege: schedulers are killed, cut off and left without their database until the time is up; then the accounts."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import re
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg2

from scheduler_app import embedded_db

from . import judge
from .scheduler import run

_UNFINISHED = "SELECT count(*) FROM scheduler_dag_run WHERE state IN ('queued', 'running')"
_RUNS = "SELECT state, count(*) FROM scheduler_dag_run GROUP BY state"
_TASKS = "SELECT coalesce(state, 'none'), count(*) FROM scheduler_task_instance GROUP BY state"
_BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
    " AND pid <> pg_backend_pid() ORDER BY pid"
)
_LOOK_SECONDS = 0.1
#: Lines of PostgreSQL's log that are of the siege's own making.
_EXPECTED = re.compile(
    r"terminating connection|the database system is|connection to client lost|could not (send|receive) data"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """`seconds` of siege; then what is left must be done within `limit_seconds`."""

    schedulers: int
    seconds: float
    #: time between two kills, between two cut connections; 0 = none
    kill_every: float
    cut_every: float
    #: when the database is stopped (0 = never), for how long, and by which signal to its postmaster
    stop_after: float
    stop_seconds: float
    stop_signal: signal.Signals
    limit_seconds: float
    seed: int
    slots: int = 12


@dataclass(slots=True)
class Accounts:
    runs: Counter[str] = field(default_factory=Counter)
    tasks: Counter[str] = field(default_factory=Counter)
    hand_outs: int = 0
    kills: int = 0
    cuts: int = 0
    stops: int = 0
    checks: int = 0
    samples: int = 0
    doubled: int = 0
    over: Counter[str] = field(default_factory=Counter)
    #: errors in PostgreSQL's log that nobody asked for, deadlocks among them
    errors: Counter[str] = field(default_factory=Counter)
    #: schedulers that ended by themselves
    died: int = 0
    seconds: float = 0.0

    @property
    def lost(self) -> int:
        return self.runs.total() - self.runs["success"] + self.tasks.total() - self.tasks["success"]

    @property
    def deadlocks(self) -> int:
        return sum(count for line, count in self.errors.items() if "deadlock" in line)

    @property
    def failed(self) -> bool:
        return bool(self.doubled or self.lost or self.over or self.errors or self.died or not self.hand_outs)


class Siege:
    def __init__(self, server: embedded_db.Server, folder: Path, plan: Plan) -> None:
        self.server, self.folder, self.plan = server, folder, plan
        self.url = embedded_db.url(server.home)
        self.rng = random.Random(plan.seed)
        self.accounts = Accounts()
        self.ledger = folder / "ledger"
        self.ledger.touch()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload([run.__module__])
        self._processes: list[BaseProcess] = []
        self._connection: Any = None

    def play(self) -> Accounts:
        began = time.monotonic()
        try:
            self._processes = [self._new_scheduler() for _ in range(self.plan.schedulers)]
            self._besiege(began)
            self._wait_for_the_end()
            self._account()
        finally:
            for process in self._processes:
                process.kill()
                process.join()
        self.accounts.seconds = round(time.monotonic() - began, 1)
        return self.accounts

    def _new_scheduler(self) -> BaseProcess:
        arguments = (self.plan.slots, str(self.ledger), str(self.folder / "schedulers.log"), self.rng.getrandbits(32))
        process = self._context.Process(target=run, args=arguments)
        process.start()
        return process

    def _besiege(self, began: float) -> None:
        plan = self.plan
        times = {self._kill: plan.kill_every, self._cut: plan.cut_every}
        due = {harm: began + every for harm, every in times.items() if every}
        stop_at = began + plan.stop_after if plan.stop_after else None
        while time.monotonic() < began + plan.seconds:
            self._look()
            for harm in [harm for harm, at in due.items() if at <= time.monotonic()]:
                harm()
                due[harm] += times[harm]
            if stop_at is not None and time.monotonic() >= stop_at:
                stop_at = None
                self._stop_database(due)
            time.sleep(_LOOK_SECONDS)

    def _kill(self) -> None:
        number = self.rng.randrange(len(self._processes))
        self._bury_the_dead()
        self._processes[number].kill()
        self._processes[number].join()
        self._processes[number] = self._new_scheduler()
        self.accounts.kills += 1

    def _bury_the_dead(self) -> None:
        """One that ended without being killed is a finding; it is replaced so that the siege goes on."""
        for number, process in enumerate(self._processes):
            if not process.is_alive():
                self.accounts.died += 1
                self._processes[number] = self._new_scheduler()

    def _cut(self) -> None:
        with contextlib.suppress(psycopg2.Error):
            backends = [pid for (pid,) in self._ask(_BACKENDS)]
            if backends:
                self._ask("SELECT pg_terminate_backend(%s)", self.rng.choice(backends))
                self.accounts.cuts += 1

    def _stop_database(self, due: dict[Any, float]) -> None:
        """Nobody is killed meanwhile: every process must live through it by itself."""
        process = self.server.process
        assert process is not None
        process.send_signal(self.plan.stop_signal)
        process.wait(embedded_db.STOP_SECONDS)
        time.sleep(self.plan.stop_seconds)
        self.server.start()
        self.accounts.stops += 1
        self._bury_the_dead()
        for harm in due:
            due[harm] += self.plan.stop_seconds

    def _wait_for_the_end(self) -> None:
        deadline = time.monotonic() + self.plan.limit_seconds
        while time.monotonic() < deadline:
            self._look()
            with contextlib.suppress(psycopg2.Error):
                if not self._ask(_UNFINISHED)[0][0]:
                    return
            time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        """One sample of every limit, from outside."""
        with contextlib.suppress(psycopg2.Error):
            self.accounts.over.update(f"sampled: {text}" for (text,) in self._ask(judge.EXCESS))
            self.accounts.samples += 1

    def _account(self) -> None:
        found = self.accounts
        found.runs = Counter(dict(self._ask(_RUNS)))
        found.tasks = Counter(dict(self._ask(_TASKS)))
        found.hand_outs = self._ask(judge.STARTED)[0][0]
        found.checks = self._ask(judge.CHECKS)[0][0]
        found.over.update(dict(self._ask(judge.VERDICTS)))
        said = Counter(self.ledger.read_text().splitlines())
        found.over.update({line: count for line, count in said.items() if line.startswith("over")})
        began_twice = sum(count - 1 for line, count in said.items() if line.startswith("begin"))
        found.doubled = began_twice + sum(self._ask(judge.DOUBLED)[0])
        self._bury_the_dead()
        found.errors = Counter(_errors(self.server.log.read_text(errors="replace")))

    def _ask(self, sql: str, *params: object) -> list[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._connection = psycopg2.connect(self.url)
            self._connection.autocommit = True
        with self._connection.cursor() as cursor:
            cursor.execute(sql, params or None)
            return list(cursor.fetchall()) if cursor.description else []


def _errors(log: str) -> Iterator[str]:
    for line in log.splitlines():
        level = re.search(r"(ERROR|FATAL|PANIC):\s*(.*)", line)
        if level and not _EXPECTED.search(line):
            yield f"{level[1]}: {level[2]}"
