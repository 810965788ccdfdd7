"""Apache Airflow's LocalExecutor on the same DAG file, machine and PostgreSQL, for ``bench.local_executor --peer``.

Its api-server, scheduler and DAG processor run from a virtual environment of their own, on a throw-away database. Only
what a measurement needs is set; the rest are Airflow's defaults, but for what makes it slower than it has to be
(``scheduler_idle_sleep_time``, ``job_heartbeat_sec``).
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg2

from bench.database import empty_database
from bench.processes import children_cpu, own_cpu
from scheduler_app import process_tree

_PROGRAMS = (("api-server", "--workers", "1"), ("scheduler",), ("dag-processor",))
_START_SECONDS = 180.0
_RUN_SECONDS = 600.0


@contextlib.contextmanager
def airflow(venv: Path, home: Path, dags: Path, slots: int) -> Iterator[Airflow]:
    """Airflow at work on a new database of the server of DATABASE_URL; everything is gone afterwards."""
    with empty_database("airflow") as address:
        made = Airflow(venv, home, address, _environment(home, dags, address, slots))
        try:
            made.start()
            yield made
        finally:
            made.stop()


class Airflow:
    def __init__(self, venv: Path, home: Path, address: str, environ: dict[str, str]) -> None:
        self._venv, self._home, self._environ = venv, home, environ
        self._address = address
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self._command("db", "migrate")
        for program in _PROGRAMS:
            with open(self._home / f"{program[0]}.log", "wb") as log:
                command = [str(self._venv / "bin/airflow"), *program]
                self._processes.append(
                    subprocess.Popen(command, env=self._environ, stdout=log, stderr=log, start_new_session=True)
                )

    def wait_for_dags(self, *dag_ids: str) -> None:
        """Until its DAG processor has stored them; then they are unpaused."""
        wanted = "SELECT count(*) FROM dag WHERE dag_id = ANY(%s)"
        self._until(lambda: self._ask(wanted, [list(dag_ids)])[0] == len(dag_ids), _START_SECONDS)
        self._ask("UPDATE dag SET is_paused = false WHERE dag_id = ANY(%s) RETURNING dag_id", [list(dag_ids)])

    def run(self, dag_id: str) -> dict[str, Any]:
        """One run: its state, and the seconds from when it was queued to its end, as its row says; and the CPU."""
        pids = [pid for process in self._processes for pid in (process.pid, *process_tree.descendants(process.pid))]
        before = sum(map(_cpu, pids))
        self._command("dags", "trigger", dag_id)
        state = "SELECT state FROM dag_run WHERE dag_id = %s"
        self._until(lambda: self._ask(state, [dag_id])[0] in ("success", "failed"), _RUN_SECONDS)
        took = "SELECT state, extract(epoch FROM end_date - queued_at) FROM dag_run WHERE dag_id = %s"
        found, seconds = self._ask(took, [dag_id])
        cpu = sum(map(_cpu, pids)) - before
        return {"state": found, "seconds": round(float(seconds), 3), "cpu_s": round(cpu, 2)}

    def stop(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            process_tree.kill_tree(process.pid)
            process.wait()

    def _command(self, *arguments: str) -> None:
        command = [str(self._venv / "bin/airflow"), *arguments]
        subprocess.run(command, env=self._environ, check=True, capture_output=True)

    def _ask(self, sql: str, params: list[Any]) -> Any:
        with (
            contextlib.closing(psycopg2.connect(self._address)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql, params)
            return cursor.fetchone()

    def _until(self, condition: Callable[[], bool], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"Airflow did not get on: see the logs in {self._home}")
            time.sleep(0.1)


def _cpu(pid: int) -> float:
    """Its own seconds and those of its ended children."""
    return own_cpu(pid) + children_cpu(pid)


def _environment(home: Path, dags: Path, address: str, slots: int) -> dict[str, str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    secret = secrets.token_hex(32)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": address.replace("postgresql://", "postgresql+psycopg2://", 1),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(slots),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__SECRET_KEY": secret,
        "AIRFLOW__API_AUTH__JWT_SECRET": secret,
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.05",
        "AIRFLOW__SCHEDULER__JOB_HEARTBEAT_SEC": "1",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "5",
    }
