"""A server of our own for the time of a block (``bin/run`` with a home of its own), and its API."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import requests

ROOT = Path(__file__).resolve().parents[2]


class Api:
    """The few calls that a check needs. Raises for an answer that is no success."""

    def __init__(self, url: str, password: str) -> None:
        self.url = url
        answer = requests.post(f"{url}/auth/token", json={"username": "admin", "password": password}, timeout=30)
        answer.raise_for_status()
        self.headers = {"Authorization": f"Bearer {answer.json()['access_token']}", "Connection": "close"}

    def call(self, method: str, path: str, **body: Any) -> dict[str, Any]:
        answer = requests.request(
            method, f"{self.url}/api/v2{path}", json=body or None, headers=self.headers, timeout=60
        )
        answer.raise_for_status()
        found: dict[str, Any] = answer.json() if answer.content else {}
        return found

    def all(self, path: str, key: str) -> list[dict[str, Any]]:
        """Every row of a paged list."""
        rows: list[dict[str, Any]] = []
        while True:
            page = self.call("GET", f"{path}{'&' if '?' in path else '?'}limit=100&offset={len(rows)}")
            rows += page[key]
            if len(rows) >= page["total_entries"] or not page[key]:
                return rows


@contextmanager
def server(dags: Path, **environment: str) -> Iterator[Api]:
    """Starts ``bin/run`` on a free port with that DAG folder; stops it and forgets its data at the end."""
    with tempfile.TemporaryDirectory(prefix="compatibility-") as home, socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        environ = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | environment
        environ |= {
            "SCHEDULER_HOME": home,
            "SCHEDULER_PORT": str(port),
            "SCHEDULER_DAGS_FOLDER": str(dags),
            "SCHEDULER_LOAD_EXAMPLES": "false",
            "SCHEDULER_ADMIN_PASSWORD": "compatibility-check",
        }
        process = subprocess.Popen([str(ROOT / "bin" / "run")], env=environ, start_new_session=True)
        try:
            url = f"http://127.0.0.1:{port}"
            yield Api(url, _ready(url, process))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _ready(url: str, process: subprocess.Popen[bytes]) -> str:
    for _ in range(240):
        if process.poll() is not None:
            raise SystemExit(f"bin/run ended with {process.returncode}")
        try:
            if requests.get(f"{url}/api/v2/version", timeout=5).ok:
                return "compatibility-check"
        except requests.ConnectionError:
            pass
        time.sleep(0.5)
    raise SystemExit("bin/run did not answer in two minutes")
