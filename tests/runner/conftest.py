"""A DAG file in a folder, its rows, and an executor that runs its attempts as real processes."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from scheduler_app import attempt_log
from scheduler_app.conf import Conf, conf
from scheduler_app.engine.dag import Dag
from scheduler_app.executors.base import HandOut
from scheduler_app.executors.inline import InlineExecutor
from scheduler_app.models import DagModel, DagRun, TaskInstance, XCom, db, transitions
from tests import rows

HEADER = """\
import os, sys, time, subprocess, signal
from datetime import datetime, timedelta
from airflow.sdk import DAG, task, get_current_context
from airflow.providers.standard.operators.bash import BashOperator
from airflow.providers.standard.operators.python import PythonOperator

with DAG("dag", schedule=None):
"""


@dataclass
class Place:
    """Folders of one test, and what it does with the rows."""

    dags: Path
    logs: Path

    def file(self, body: str, name: str = "dag.py") -> Path:
        """A DAG file whose DAG "dag" has this body."""
        path = self.dags / name
        path.write_text(HEADER + textwrap.indent(textwrap.dedent(body), "    "))
        return path

    def stored(self, dag: Dag, path: Path) -> DagModel:
        rows.default_pool()
        return rows.store(dag, fileloc=str(path), relative_fileloc=path.name)

    def queued(self, run: DagRun, *task_ids: str) -> list[HandOut]:
        """These tasks of the run (all when none is named), admitted and ready to hand out."""
        found = TaskInstance.objects.filter(dag_run=run).order_by("id")
        ids = list((found.filter(task_id__in=task_ids) if task_ids else found).values_list("id", flat=True))
        now = db.clock()
        transitions.tasks("schedule", ids, now)
        transitions.tasks("queue", ids, now)
        return [
            HandOut(ti_id, fence) for ti_id, fence in TaskInstance.objects.filter(id__in=ids).values_list("id", "fence")
        ]

    def hand_out(self, ti: TaskInstance) -> HandOut:
        return HandOut(ti.pk, ti.fence)

    def log(self, ti: TaskInstance, try_number: int | None = None) -> str:
        path = attempt_log.path(
            self.logs, ti.dag_id, ti.dag_run.run_id, ti.task_id, ti.map_index, try_number or ti.try_number
        )
        return attempt_log.plain_text(attempt_log.read(path)[0])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "dags").mkdir()
    return Place(tmp_path / "dags", tmp_path / "logs")


@pytest.fixture
def knobs(place: Place) -> Conf:
    return replace(
        conf(),
        log_folder=place.logs,
        dags_folder=place.dags,
        task_heartbeat_seconds=0.2,
        kill_grace_seconds=1.0,
        fernet_keys=("MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=",),
    )


@pytest.fixture
def executor(knobs: Conf, db: Any) -> Iterator[InlineExecutor]:
    made = InlineExecutor(knobs, slots=8)
    made.start(0)
    yield made
    made.stop(0)


def ti_of(run: DagRun, task_id: str, map_index: int = -1) -> TaskInstance:
    return TaskInstance.objects.select_related("dag_run").get(dag_run=run, task_id=task_id, map_index=map_index)


def xcom_of(run: DagRun, task_id: str, key: str = "return_value") -> Any:
    """The stored document, or "nothing"."""
    found = list(XCom.objects.filter(dag_run=run, task_id=task_id, key=key).values_list("value", flat=True))
    return found[0] if found else "nothing"


def until(step: Callable[[], Any], condition: Callable[[], bool], passes: int = 400) -> None:
    """Drive `step` until the condition holds. Fails when it never does."""
    for _ in range(passes):
        if condition():
            return
        step()
    raise AssertionError("the condition never came true")
