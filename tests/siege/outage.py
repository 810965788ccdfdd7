"""``python -m tests.siege.outage [--stop-seconds 30] [--stop-mode fast|immediate] [--broker URL]``: no database.

Every kind of process is at work on a PostgreSQL of its own: a scheduler with its runner, a DAG processor, a triggerer,
a web server and, with a broker, a Celery worker. The server is stopped in the middle and started again. Every process
must live through it; what runs goes on, and its outcome is written when the database is back.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import psycopg2

from scheduler_app import embedded_db
from tests.chaos.house import ROOT, House, alive, children_of, command_of, wait_for
from tests.executors.queues import cleared

SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
#: A short stop: leases are lost in it, heartbeats of attempts are not.
_SHORT = {"SCHEDULER_LEASE_SECONDS": "2", "SCHEDULER_TASK_HEARTBEAT_TIMEOUT_SECONDS": "20"}
#: A long one: as the product is set up by default.
_LONG = {
    "SCHEDULER_HEARTBEAT_SECONDS": "5",
    "SCHEDULER_LEASE_SECONDS": "30",
    "SCHEDULER_TASK_HEARTBEAT_SECONDS": "5",
    "SCHEDULER_TASK_HEARTBEAT_TIMEOUT_SECONDS": "60",
}
_START_SECONDS = 60


@dataclass(slots=True)
class Accounts:
    processes: int = 0
    #: processes of ours, and attempts, that were gone when the database came back
    dead: list[str] = field(default_factory=list)
    tasks: int = 0
    retried: int = 0
    doubled: int = 0
    lost: int = 0
    run_state: str = ""
    #: process → what it answered to SIGUSR2 while it was at work
    told: dict[str, str] = field(default_factory=dict)
    #: path → what the web said while the database was away
    said: dict[str, tuple[int, str]] = field(default_factory=dict)
    #: from the server's return to the run's end, beyond what the tasks themselves took
    back_seconds: float = 0.0

    @property
    def failed(self) -> bool:
        return bool(self.dead or self.retried or self.doubled or self.lost or self.run_state != "success")


class Town(House):
    """A house with a web server (``web``) as well, and DAGs of its own."""

    def __init__(self, folder: Path, database_url: str, *, seconds: float, broker: str, knobs: dict[str, str]) -> None:
        super().__init__(folder, database_url, tasks=0, seconds=seconds, broker=broker)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.queue = f"outage-{uuid.uuid4().hex[:8]}"
        self.environ |= {
            "SCHEDULER_DAGS_FOLDER": str(Path(__file__).parent / "dags"),
            "SCHEDULER_EXECUTOR": "LocalExecutor,CeleryExecutor" if broker else "LocalExecutor",
            "OUTAGE_CELERY": "1" if broker else "",
            "LEDGER_QUEUE": self.queue,
            **knobs,
        }

    def _command(self, name: str) -> tuple[list[str], dict[str, str]]:
        if name != "web":
            return super()._command(name)
        command = ["-m", "gunicorn", "-b", f"127.0.0.1:{self.port}", "--threads", "4", "scheduler_app.wsgi"]
        return command, self.environ

    def get(self, path: str) -> tuple[int, str]:
        """What the web answers to somebody with a session: status and text."""
        cookie = {"Cookie": "scheduler_session=of-somebody"}
        try:
            with urllib.request.urlopen(
                urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers=cookie), timeout=15
            ) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def must_live(self) -> dict[str, psutil.Process]:
        """Our processes and the runners below them."""
        found = {name: psutil.Process(process.pid) for name, process in self.processes.items()}
        for name, process in list(found.items()):
            for child in children_of(process):
                if "scheduler_app.runner.process" in command_of(child):
                    found[f"runner of {name}"] = child
        return found

    def attempts(self) -> dict[tuple[str, int], psutil.Process]:
        """(task, try) → its process, of those that began and have not ended."""
        begun: dict[tuple[str, int], int] = {}
        for what, task_id, number, pid in self.entries():
            if what == "begin":
                begun[task_id, number] = int(pid)
            else:
                begun.pop((task_id, number), None)
        return {key: psutil.Process(pid) for key, pid in begun.items() if psutil.pid_exists(pid)}


def play(folder: Path, stop_seconds: float, stop_signal: int, broker: str) -> Accounts:
    """On a server of its own below the folder, which gets ledger, home and logs as well."""
    server = embedded_db.Server(folder / "server")
    try:
        with embedded_db.locked(server.home):
            server.start()
            environ = {**os.environ, "DATABASE_URL": embedded_db.url(server.home), "SCHEDULER_HOME": str(folder)}
            subprocess.run([sys.executable, str(ROOT / "manage.py"), "migrate", "-v0"], env=environ, check=True)
            return _play(server, folder, stop_seconds, stop_signal, broker)
    finally:
        server.stop()
        embedded_db.remove(server.home)


def _play(server: embedded_db.Server, folder: Path, stop_seconds: float, stop_signal: int, broker: str) -> Accounts:
    knobs = _LONG if stop_seconds >= 10 else _SHORT
    url = embedded_db.url(server.home)
    town = Town(folder, url, seconds=stop_seconds * 1.5 + 2, broker=broker, knobs=knobs)
    with contextlib.ExitStack() as afterwards:
        if broker:
            afterwards.enter_context(cleared(broker, town.queue))
        try:
            for name in ("processor", "scheduler1", "triggerer", "web", *(["worker1"] if broker else [])):
                town.start(name)
            return _outage(town, server, url, stop_seconds, stop_signal)
        except BaseException:
            sys.stderr.write(town.logs() + "\n")
            raise
        finally:
            town.stop()


def _outage(town: Town, server: embedded_db.Server, url: str, stop_seconds: float, stop_signal: int) -> Accounts:
    found = Accounts()
    expected = 6 if town.broker else 3
    wait_for(lambda: _ask(url, "SELECT 1 FROM scheduler_dag WHERE dag_id = 'outage'"), _START_SECONDS, "the DAG")
    wait_for(lambda: town.get("/healthz")[0] == 200, _START_SECONDS, "the web server and a scheduler")
    command = [sys.executable, str(ROOT / "manage.py"), "dags", "trigger", "outage", "--run-id", "one"]
    subprocess.run(command, cwd=ROOT, env=town.environ, check=True, stdout=subprocess.DEVNULL)
    waits = "SELECT 1 FROM scheduler_task_instance WHERE task_id = 'waits' AND state = 'deferred'"
    long_ones = lambda: [key for key in town.attempts() if key[0].startswith("long")]  # noqa: E731
    wait_for(lambda: len(long_ones()) == expected and _ask(url, waits), _START_SECONDS, "the long tasks to run")
    living, attempts = town.must_live(), town.attempts()
    found.processes = len(living)
    found.told = _ask_all(town, living)
    assert server.process is not None
    server.process.send_signal(stop_signal)
    server.process.wait(embedded_db.STOP_SECONDS)
    until = time.monotonic() + stop_seconds
    found.said = {path: town.get(path) for path in ("/healthz", "/dags/", "/api/v2/dags", "/api/v2/monitor/health")}
    while time.monotonic() < until:
        time.sleep(0.1)
    found.dead = [name for name, process in living.items() if not alive(process)]
    found.dead += [key[0] for key, process in attempts.items() if not alive(process) and not town.lines("end")[key]]
    server.start()
    back = time.monotonic()
    state: Callable[[], Any] = lambda: _ask(url, "SELECT state FROM scheduler_dag_run WHERE run_id = 'one'")[0][0]  # noqa: E731
    wait_for(lambda: state() in ("success", "failed"), 60 + 3 * stop_seconds, "the run to end")
    found.back_seconds = round(time.monotonic() - back, 1)
    found.dead += [f"{name} (afterwards)" for name, process in living.items() if not alive(process)]
    found.run_state = str(state())
    wait_for(lambda: town.get("/healthz")[0] == 200, 30, "the web server to see the scheduler again")
    _count(found, town, url)
    return found


def _ask_all(town: Town, living: dict[str, psutil.Process]) -> dict[str, str]:
    """Each process of ours says in its log, or its parent's, what it does."""
    told = {}
    for name, process in living.items():
        if name in ("web", "worker1"):  # gunicorn and Celery have signals of their own
            continue
        process.send_signal(signal.SIGUSR2)
        log = town.folder / f"{name.removeprefix('runner of ')}.log"
        said = lambda: log.read_text().partition(f"(pid {process.pid}) was asked what it does")[2]  # noqa: B023, E731
        wait_for(lambda: "── thread" in said(), 10, f"{name} to say what it does")  # noqa: B023
        told[name] = said()
    return told


def _count(found: Accounts, town: Town, url: str) -> None:
    rows = _ask(url, "SELECT task_id, try_number, state FROM scheduler_task_instance")
    begun, ended = town.lines("begin"), town.lines("end")
    found.tasks = len(rows)
    found.retried = sum(number - 1 for _, number, _ in rows)
    found.doubled = sum(count - 1 for count in (*begun.values(), *ended.values()))
    found.lost = sum(state != "success" for _, _, state in rows)
    found.lost += sum(1 for task_id, number, _ in rows if task_id != "waits" and ended[task_id, number] != 1)


def _ask(url: str, sql: str) -> list[tuple[Any, ...]]:
    connection = psycopg2.connect(url)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())
    finally:
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.siege.outage", description=__doc__)
    parser.add_argument("--stop-seconds", type=float, default=30)
    parser.add_argument("--stop-mode", choices=sorted(SIGNALS), default="fast")
    parser.add_argument("--broker", default="", help="URL of a broker: a Celery worker takes part")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="outage-"))
    try:
        found = play(folder, args.stop_seconds, SIGNALS[args.stop_mode], args.broker)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for path, (status, text) in found.said.items():
        print(f"meanwhile {path}: {status} {json.dumps(' '.join(text.split())[-160:])}")
    for name in found.dead:
        print(f"dead: {name}")
    print(
        f"{args.stop_seconds:g} s without the database: {found.processes} processes, {len(found.dead)} dead;"
        f" {found.tasks} tasks, {found.retried} retried, {found.doubled} doubled, {found.lost} lost,"
        f" run {found.run_state} {found.back_seconds} s after its return"
    )
    return int(found.failed)


if __name__ == "__main__":
    sys.exit(main())
