"""One play: so many tasks, a way to do harm in the middle of them, and the accounts afterwards."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg2

from tests.executors.queues import cleared

from .house import ROOT, House, children_of, wait_for
from .limits import JOURNAL, judge

Harm = Callable[[House], None]


def kill_scheduler(house: House) -> None:
    house.kill_process("scheduler1")
    house.start("scheduler1")


def kill_runner(house: House) -> None:
    runner = house.runner("scheduler1")
    house.kill([runner], [runner])


def kill_zygote(house: House) -> None:
    zygote = house.zygote("scheduler1")
    house.kill([zygote], [zygote])


def kill_processor(house: House) -> None:
    house.kill_process("processor")
    house.start("processor")


def kill_everything(house: House) -> None:
    roots = [psutil.Process(process.pid) for process in house.processes.values() if process.poll() is None]
    every = [child for root in roots for child in children_of(root)]
    house.kill([*roots, *every])
    for name in list(house.processes):
        house.processes[name].wait()
        house.start(name)


def kill_one_of_two_schedulers(house: House) -> None:
    house.kill_process("scheduler2")


def kill_worker(house: House) -> None:
    house.kill_process("worker1")
    house.start("worker1")


def kill_runner_of_worker(house: House) -> None:
    runner = house.runner("worker1")
    house.kill([runner], [runner])


def kill_zygote_of_worker(house: House) -> None:
    zygote = house.zygote("worker1")
    house.kill([zygote], [zygote])


HARMS: dict[str, Harm] = {
    "nothing": lambda house: None,
    "scheduler": kill_scheduler,
    "runner": kill_runner,
    "zygote": kill_zygote,
    "processor": kill_processor,
    "everything": kill_everything,
    "one_of_two_schedulers": kill_one_of_two_schedulers,
}
#: Where Celery workers run the tasks.
CELERY_HARMS: dict[str, Harm] = {
    "nothing": lambda house: None,
    "scheduler": kill_scheduler,
    "worker": kill_worker,
    "runner": kill_runner_of_worker,
    "zygote": kill_zygote_of_worker,
    "everything": kill_everything,
    "one_of_two_schedulers": kill_one_of_two_schedulers,
}


@dataclass(frozen=True, slots=True)
class Accounts:
    """What the ledger and the database say at the end. ``doubled``, ``lost``, ``over`` and ``held`` must be 0."""

    tasks: int
    attempts: int
    doubled: int
    lost: int
    #: commits that left more in use than a limit allows; always 0 without a journal
    over: int
    #: slots that are still in use when every run has ended
    held: int
    run_state: str
    seconds: float

    @property
    def good(self) -> bool:
        return not (self.doubled or self.lost or self.over or self.held) and self.run_state == "success"


def play(
    database_url: str,
    *,
    tasks: int = 200,
    seconds: float = 0.2,
    schedulers: int = 1,
    broker: str = "",
    harm: Harm,
    limit_seconds: float = 120,
    more: Mapping[str, str] | None = None,
) -> Accounts:
    """Runs the ledger DAG once on a migrated database of our own and does the harm when a part of it is done.

    With the URL of a `broker` two Celery workers run the tasks, else the schedulers' local executors do.
    """
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, contextlib.ExitStack() as afterwards:
        house = House(Path(folder), database_url, tasks=tasks, seconds=seconds, broker=broker, more=more)
        if broker:
            afterwards.enter_context(cleared(broker, house.queue))
        try:
            names = ["worker1", "worker2"] if broker else []
            names += ["processor", *(f"scheduler{number}" for number in range(1, schedulers + 1))]
            for name in [*names, "triggerer"] if more else names:
                house.start(name)
            return _accounts_after(house, harm, tasks, limit_seconds, begin_at=10 if more else tasks // 3)
        except BaseException:
            sys.stderr.write(house.logs() + "\n")
            raise
        finally:
            house.stop()


def _accounts_after(house: House, harm: Harm, tasks: int, limit_seconds: float, begin_at: int) -> Accounts:
    with _connection(house.environ["DATABASE_URL"]) as ask:
        wait_for(lambda: ask("SELECT 1 FROM scheduler_dag WHERE dag_id = 'ledger'"), 60, "the DAG to be parsed")
        began = time.monotonic()
        run_id = f"chaos_{uuid.uuid4().hex[:8]}"
        _manage(house, "dags", "trigger", "ledger", "--run-id", run_id)
        wait_for(lambda: len(house.lines("end")) >= begin_at, limit_seconds, f"{begin_at} tasks to end")
        harm(house)
        state = "SELECT state FROM scheduler_dag_run WHERE run_id = %s"
        wait_for(lambda: ask(state, run_id)[0][0] in ("success", "failed"), limit_seconds, "the run to end")
        took = time.monotonic() - began
        over, held = judge(ask) if ask("SELECT to_regclass('chaos_move')")[0][0] else (0, 0)
        return Accounts(
            tasks=tasks,
            attempts=sum(house.lines("begin").values()),
            doubled=_doubled(house),
            lost=tasks - _ended_once(house, dict(ask(_TRIES, run_id))),
            over=over,
            held=held,
            run_state=str(ask(state, run_id)[0][0]),
            seconds=round(took, 1),
        )


_TRIES = """
SELECT ti.task_id || CASE WHEN ti.map_index < 0 THEN '' ELSE '[' || ti.map_index || ']' END, ti.try_number
FROM scheduler_task_instance ti JOIN scheduler_dag_run r ON r.id = ti.dag_run_id
WHERE r.run_id = %s AND ti.state = 'success'
"""


def _ended_once(house: House, tries: dict[object, object]) -> int:
    """Tasks whose row is a success, by a try that says so too."""
    ended = house.lines("end")
    return sum(1 for task_id, number in tries.items() if ended[str(task_id), int(str(number))] == 1)


def _doubled(house: House) -> int:
    """Hand-outs that ran twice, and tries that still wrote something after the next one had begun."""
    twice = sum(count - 1 for what in ("begin", "resume", "end") for count in house.lines(what).values())
    begun = {(task, number): moment for what, task, number, moment in house.entries() if what == "begin"}
    beside = sum(1 for _, task, number, moment in house.entries() if moment > begun.get((task, number + 1), moment))
    return twice + beside


def _manage(house: House, *arguments: str) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    subprocess.run(command, cwd=ROOT, env=house.environ, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def _connection(url: str) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """Asks the database; a server that was away meanwhile is asked again."""
    open_ones: list[Any] = []

    def ask_once(sql: str, params: tuple[object, ...]) -> list[tuple[Any, ...]]:
        if not open_ones:
            open_ones.append(psycopg2.connect(url))
            open_ones[0].autocommit = True
        with open_ones[0].cursor() as cursor:
            cursor.execute(sql, params or None)
            return list(cursor.fetchall())

    def ask(sql: str, *params: object) -> list[tuple[Any, ...]]:
        try:
            return ask_once(sql, params)
        except (psycopg2.OperationalError, psycopg2.InterfaceError):
            open_ones.clear()
            return ask_once(sql, params)

    try:
        yield ask
    finally:
        for one in open_ones:
            one.close()


def prepared(url: str, *, journal: bool = False) -> None:
    """The tables; with a `journal` of every change of a state."""
    command = [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "DATABASE_URL": url}, check=True)
    if journal:
        with contextlib.closing(psycopg2.connect(url)) as connection:
            connection.cursor().execute(JOURNAL)
            connection.commit()


@contextmanager
def fresh_database(server_url: str) -> Iterator[str]:
    """A migrated database of our own on that server, dropped at the end."""
    name = f"chaos_{os.getpid()}_{uuid.uuid4().hex[:6]}"
    url = urlsplit(server_url)
    own = urlunsplit(url._replace(path=f"/{name}"))
    admin = psycopg2.connect(server_url)
    admin.autocommit = True
    try:
        admin.cursor().execute(f'CREATE DATABASE "{name}"')
        prepared(own)
        yield own
    finally:
        admin.cursor().execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.close()
