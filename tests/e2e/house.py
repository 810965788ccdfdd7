"""The whole product on a free port: ``manage.py standalone`` with a database, a home and a DAG folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg2
import requests
from cryptography.fernet import Fernet

ROOT = Path(__file__).resolve().parents[2]
DAGS = Path(__file__).parent / "dags"
#: What the files of that folder define.
DAG_IDS = (
    "invoices", "orders_daily", "rates_broken", "rates_import", "rates_plain", "shelves_waiting", "stock_daily",
    "stock_held", "stock_keys",
)  # fmt: skip
PASSWORD = "the-password-of-admin"
ENVIRONMENT = {
    "SCHEDULER_LOAD_EXAMPLES": "false",
    "SCHEDULER_ADMIN_PASSWORD": PASSWORD,
    "SCHEDULER_DAG_DIR_SCAN_SECONDS": "1",
    "SCHEDULER_PARALLELISM": "8",
    "SCHEDULER_STOP_SECONDS": "5",
    "SCHEDULER_SECRET_KEY": "a key that protects nothing but a test",
    "SCHEDULER_FERNET_KEYS": Fernet.generate_key().decode(),
}


@dataclass(frozen=True)
class House:
    """A running product: its address, and the folder whose files its tasks look at."""

    url: str
    folder: Path
    token: str

    def open_gate(self, name: str) -> None:
        (self.folder / name).touch()

    def api(self, path: str, method: str = "GET", **body: Any) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = requests.request(method, f"{self.url}/api/v2{path}", json=body or None, headers=headers, timeout=30)
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    def trigger(self, dag_id: str, *, unpause: bool = True) -> str:
        """The id of a new run; the DAG is switched on for it, or stays as it is."""
        if unpause:
            self.api(f"/dags/{dag_id}", "PATCH", is_paused=False)
        run_id: str = self.api(f"/dags/{dag_id}/dagRuns", "POST", logical_date=None, conf={})["dag_run_id"]
        return run_id

    def until(self, found: Callable[[], Any]) -> Any:
        return _until(found, self.folder.parent)


@contextmanager
def open_house(server_url: str, folder: Path) -> Iterator[House]:
    """Yields when every DAG of the folder can be triggered. AssertionError shows the last lines when that fails."""
    for name in ("home", "dags", "gates"):
        (folder / name).mkdir()
    for file in DAGS.glob("*.py"):
        shutil.copy(file, folder / "dags")
    log = folder / "standalone.log"
    with _database(server_url) as database_url, log.open("wb") as out:
        port = _free_port()
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "standalone"],
            cwd=ROOT,
            env={**os.environ, **ENVIRONMENT, **_places(folder, database_url, port)},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
        try:
            yield _ready(f"http://127.0.0.1:{port}", folder, process)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _places(folder: Path, database_url: str, port: int) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "SCHEDULER_HOME": str(folder / "home"),
        "SCHEDULER_DAGS_FOLDER": str(folder / "dags"),
        "SCHEDULER_PORT": str(port),
        "E2E_FOLDER": str(folder / "gates"),
    }


@contextmanager
def _database(server_url: str) -> Iterator[str]:
    """An empty database of our own on that server, dropped at the end."""
    name = f"e2e_{os.getpid()}_{uuid.uuid4().hex[:6]}"
    admin = psycopg2.connect(server_url)
    admin.autocommit = True
    try:
        admin.cursor().execute(f'CREATE DATABASE "{name}"')
        yield urlunsplit(urlsplit(server_url)._replace(path=f"/{name}"))
    finally:
        admin.cursor().execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        admin.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _ready(url: str, folder: Path, process: subprocess.Popen[bytes]) -> House:
    def token() -> str | None:
        assert process.poll() is None, f"standalone ended:\n{(folder / 'standalone.log').read_text()[-4000:]}"
        try:
            body = {"username": "admin", "password": PASSWORD}
            return requests.post(f"{url}/auth/token", json=body, timeout=10).json()["access_token"]
        except requests.ConnectionError:
            return None

    house = House(url, folder / "gates", _until(token, folder))
    _until(lambda: house.api("/dags")["total_entries"] == len(DAG_IDS), folder)
    return house


def _until(found: Callable[[], Any], folder: Path, seconds: float = 90) -> Any:
    """Asks again until the answer is true."""
    deadline = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < deadline, (folder / "standalone.log").read_text()[-4000:]
        time.sleep(0.1)
    return answer
