"""DAG files in a folder, and children that run their tasks without any database."""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from scheduler_app import attempt_log
from scheduler_app.supervisor.base import Exit
from scheduler_app.supervisor.child import Child, Clocks
from scheduler_app.supervisor.children import Children, Limits
from scheduler_app.supervisor.events import Events
from scheduler_app.supervisor.zygote import DagFile

NOON = "2026-03-01T12:00:00+00:00"
HEADER = """\
import logging, os, random, signal, subprocess, sys, threading, time
from airflow.sdk import DAG, task

with open(__file__ + ".imports", "a") as count:
    count.write("x")

"""


def start_document(task_id: str, dag_id: str = "dag", **ti: Any) -> dict[str, Any]:
    """The ``start`` message of a first try of a manual run."""
    run = {
        "dag_id": dag_id,
        "run_id": "run",
        "run_type": "manual",
        "logical_date": NOON,
        "data_interval_start": NOON,
        "data_interval_end": NOON,
        "run_after": NOON,
        "start_date": NOON,
        "end_date": None,
        "queued_at": NOON,
        "conf": {},
        "state": "running",
        "note": None,
        "triggering_user_name": None,
        "consumed_asset_events": [],
        "clear_number": 0,
        "partition_key": None,
    }
    instance = {
        "id": 1,
        "dag_id": dag_id,
        "run_id": "run",
        "task_id": task_id,
        "map_index": -1,
        "try_number": 1,
        "max_tries": 0,
        "fence": 1,
        "queue": "default",
        "pool": "default_pool",
        "start_date": NOON,
        "first_start_date": NOON,
        "hostname": "here",
        "next_method": None,
        "next_kwargs": None,
        "priority_weight": 1,
        "task_display_name": task_id,
        **ti,
    }
    return {
        "op": "start",
        "ti": instance,
        "run": run,
        "upstream_map_lengths": {},
        "log_url": "",
        "mark_success_url": None,
        "limits": {},
    }


@dataclass
class Seen:
    """A watcher that notes what it hears, and answers every request with null."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    exit: Exit | None = None

    def message(self, child: Child, message: dict[str, Any]) -> None:
        self.messages.append(message)
        if "id" in message:
            child.answer(message)

    def ended(self, child: Child, exit: Exit) -> None:
        self.exit = exit
        child.close_log()

    @property
    def outcome(self) -> dict[str, Any]:
        return next(message for message in self.messages if message["op"] == "outcome")

    @property
    def result(self) -> Any:
        return next(
            message["value"]
            for message in self.messages
            if message["op"] == "set_xcom" and message["key"] == "return_value"
        )


class Stage:
    """One supervisor with its children; ``perform`` runs a task of the folder's file to its end."""

    def __init__(self, folder: Path, environ: dict[str, str], limits: Limits) -> None:
        self.folder = folder
        self.events = Events()
        self.clocks = Clocks(time.monotonic, lambda: datetime.now(UTC))
        self.children = Children(self.events, self.clocks, environ, limits)

    def write(self, body: str, name: str = "dag.py") -> Path:
        """A DAG file whose DAG "dag" has the tasks of this body."""
        path = self.folder / name
        path.write_text(HEADER + 'with DAG("dag", schedule=None):\n' + textwrap.indent(textwrap.dedent(body), "    "))
        return path

    @property
    def file(self) -> DagFile:
        return DagFile(str(self.folder / "dag.py"), str(self.folder))

    def imports(self) -> int:
        return len((self.folder / "dag.py.imports").read_text())

    def begin(self, task_id: str) -> tuple[Child, Seen]:
        seen = Seen()
        child = self.children.start(self.file, self.folder / f"{task_id}.log", start_document(task_id), seen)
        return child, seen

    def pass_until(self, condition: Any, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the condition never came true"
            self.events.poll(0.02)
            self.children.tick()

    def perform(self, task_id: str) -> Seen:
        _, seen = self.begin(task_id)
        self.pass_until(lambda: seen.exit is not None)
        return seen

    def log(self, task_id: str) -> list[dict[str, Any]]:
        return attempt_log.read(self.folder / f"{task_id}.log")[0]


@pytest.fixture
def environ() -> dict[str, str]:
    return dict(os.environ)


@pytest.fixture
def limits() -> Limits:
    return Limits()


@pytest.fixture
def stage(tmp_path: Path, environ: dict[str, str], limits: Limits) -> Iterator[Stage]:
    made = Stage(tmp_path, environ, limits)
    yield made
    made.children.stop()
    made.events.close()
