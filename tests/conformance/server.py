"""A server that speaks Airflow's API, over plain HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import requests

DONE = {"success", "failed"}
PAGE = 100


class Refused(Exception):
    """The server answered with a status from 400 on: ``status`` and ``text``."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"HTTP {status}: {text[:300]}")
        self.status = status
        self.text = text


class Server:
    def __init__(self, base_url: str, user: str, password: str) -> None:
        self.base = base_url.rstrip("/")
        self.headers: dict[str, str] = {}
        token = self.ask("POST", "/auth/token", json={"username": user, "password": password})["access_token"]
        self.headers = {"Authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """The JSON that the server answers; Refused when it does not go through."""
        answer = requests.request(method, self.base + path, headers=self.headers, timeout=60, **more)
        if answer.status_code >= 400:
            raise Refused(answer.status_code, answer.text)
        return answer.json() if answer.content and "json" in answer.headers.get("content-type", "") else answer.text

    def status(self, method: str, path: str, **more: Any) -> int:
        return requests.request(method, self.base + path, headers=self.headers, timeout=60, **more).status_code

    def all(self, path: str, key: str, **params: Any) -> Iterator[dict[str, Any]]:
        """Every item of a list, page by page."""
        offset = 0
        while True:
            page = self.ask("GET", path, params={**params, "limit": PAGE, "offset": offset})
            yield from page[key]
            offset += PAGE
            if offset >= page["total_entries"]:
                return

    def dag_ids(self) -> set[str]:
        return {dag["dag_id"] for dag in self.all("/api/v2/dags", "dags", exclude_stale=True)}

    def pause(self, dag_id: str, paused: bool) -> None:
        self.ask("PATCH", f"/api/v2/dags/{dag_id}", json={"is_paused": paused})

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        return list(self.all(f"/api/v2/dags/{dag_id}/dagRuns", "dag_runs", order_by="run_after"))

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        return self.ask("GET", f"/api/v2/dags/{dag_id}/dagRuns/{run_id}")

    def trigger(self, dag_id: str, **body: Any) -> dict[str, Any]:
        return self.ask("POST", f"/api/v2/dags/{dag_id}/dagRuns", json=body)

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        found = self.all(f"/api/v2/dags/{dag_id}/dagRuns/{run_id}/taskInstances", "task_instances")
        return sorted(found, key=lambda task: (task["task_id"], task["map_index"]))

    def forget_runs(self, dag_id: str) -> None:
        """Deletes every run of the DAG, so that a case can be run again on the same server."""
        for run in self.runs(dag_id):
            path = f"/api/v2/dags/{dag_id}/dagRuns/{run['dag_run_id']}"
            for _ in range(10):
                if run["state"] not in DONE:
                    self.status("PATCH", path, json={"state": "failed"})
                    time.sleep(2)
                if self.status("DELETE", path) in (200, 204, 404):
                    break
                time.sleep(1)


def wait_for(ask: Callable[[], Any], seconds: float, what: str, pause: float = 1.0) -> Any:
    """The first true answer; TimeoutError when there is none in that time."""
    end = time.monotonic() + seconds
    while True:
        if answer := ask():
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"not seen within {seconds:.0f} s: {what}")
        time.sleep(pause)


VARIABLES = {"conf_word": "plain", "conf_table": '{"a": 1, "b": [2]}'}
CONNECTIONS: tuple[dict[str, Any], ...] = (
    {"connection_id": "conf_web", "conn_type": "http", "host": "example.invalid", "port": 8443, "extra": '{"a": 1}'},
    {"connection_id": "conf_fs_root", "conn_type": "fs", "extra": '{"path": "/"}'},
)
POOLS = {"conf_one": 1, "conf_two": 2}


def prepare(server: Server) -> None:
    """Makes the variables, connections and pools that the DAG files name, unless they are there."""
    for key, value in VARIABLES.items():
        server.status("POST", "/api/v2/variables", json={"key": key, "value": value})
    for connection in CONNECTIONS:
        server.status("POST", "/api/v2/connections", json=connection)
    for name, slots in POOLS.items():
        server.status("POST", "/api/v2/pools", json={"name": name, "slots": slots})
