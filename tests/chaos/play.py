"""One play: so many tasks, a way to do harm in the middle of them, and the accounts afterwards."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psutil
import psycopg2

from tests.executors.queues import cleared

from .house import ROOT, House, children_of, wait_for

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
    """What the ledger and the database say at the end. ``doubled`` and ``lost`` must be 0."""

    tasks: int
    attempts: int
    doubled: int
    lost: int
    run_state: str
    seconds: float


def play(
    database_url: str,
    harm: str,
    *,
    tasks: int = 200,
    seconds: float = 0.2,
    schedulers: int = 1,
    broker: str = "",
    harmer: Harm | None = None,
    limit_seconds: float = 120,
) -> Accounts:
    """Runs the ledger DAG once on a migrated database of our own and does the harm when a third of it is done.

    With the URL of a `broker` two Celery workers run the tasks, else the schedulers' local executors do.
    A `harmer` takes the place of the harm of that name.
    """
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder, contextlib.ExitStack() as afterwards:
        house = House(Path(folder), database_url, tasks=tasks, seconds=seconds, broker=broker)
        if broker:
            afterwards.enter_context(cleared(broker, house.queue))
        try:
            for number in (1, 2) if broker else ():
                house.start(f"worker{number}")
            house.start("processor")
            for number in range(1, schedulers + 1):
                house.start(f"scheduler{number}")
            named = (CELERY_HARMS if broker else HARMS).get(harm)
            doer = harmer or named
            assert doer is not None, f"there is no harm {harm}"
            return _accounts_after(house, doer, tasks, limit_seconds)
        except BaseException:
            sys.stderr.write(house.logs() + "\n")
            raise
        finally:
            house.stop()


def _accounts_after(house: House, harm: Harm, tasks: int, limit_seconds: float) -> Accounts:
    with _connection(house.environ["DATABASE_URL"]) as ask:
        wait_for(lambda: ask("SELECT 1 FROM scheduler_dag WHERE dag_id = 'ledger'"), 30, "the DAG to be parsed")
        began = time.monotonic()
        run_id = f"chaos_{uuid.uuid4().hex[:8]}"
        _manage(house, "dags", "trigger", "ledger", "--run-id", run_id)
        wait_for(lambda: len(house.lines("end")) >= tasks // 3, limit_seconds, "a third of the tasks to end")
        harm(house)
        state = "SELECT state FROM scheduler_dag_run WHERE run_id = %s"
        wait_for(lambda: ask(state, run_id)[0][0] in ("success", "failed"), limit_seconds, "the run to end")
        tries = dict(
            ask(
                "SELECT task_id, try_number FROM scheduler_task_instance ti JOIN scheduler_dag_run r"
                " ON r.id = ti.dag_run_id WHERE r.run_id = %s AND ti.state = 'success'",
                run_id,
            )
        )
        begun, ended = house.lines("begin"), house.lines("end")
        return Accounts(
            tasks=tasks,
            attempts=sum(begun.values()),
            doubled=sum(count - 1 for count in (*begun.values(), *ended.values())),
            lost=tasks - sum(1 for task_id, number in tries.items() if ended[task_id, number] == 1),
            run_state=str(ask(state, run_id)[0][0]),
            seconds=round(time.monotonic() - began, 1),
        )


def _manage(house: House, *arguments: str) -> None:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    subprocess.run(command, cwd=ROOT, env=house.environ, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def _connection(url: str) -> Iterator[Callable[..., list[tuple[object, ...]]]]:
    connection = psycopg2.connect(url)
    connection.autocommit = True

    def ask(sql: str, *params: object) -> list[tuple[object, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(sql, params or None)
            return list(cursor.fetchall())

    try:
        yield ask
    finally:
        connection.close()


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
        subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), "migrate", "--verbosity", "0"],
            cwd=ROOT,
            env={**os.environ, "DATABASE_URL": own},
            check=True,
        )
        yield own
    finally:
        admin.cursor().execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.close()
