"""A stored bundle, runs of it, and the Celery executor of a scheduler in front of real workers."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest
from django.db import connection

from scheduler_app.conf import conf
from scheduler_app.engine.dag import Dag
from scheduler_app.executors.base import HandOut
from scheduler_app.executors.celery import CeleryExecutor
from scheduler_app.models import BundleVersion, DagModel, DagRun, SourceBlob, TaskInstance, db, transitions
from tests import rows
from tests.conftest import service_url

from .brokers import Wire, Workers, environment, wait_for
from .queues import cleared

#: Of the Redis server: a database that nobody else uses.
REDIS_DATABASE = "14"


def bundle(files: Mapping[str, str], name: str = "dags") -> str:
    """Stores a version of a bundle; its name."""
    manifest = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in files.items()}
    for path, text in files.items():
        SourceBlob.objects.get_or_create(sha256=manifest[path], defaults={"content": text.encode()})
    version = hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
    BundleVersion.objects.create(bundle_name=name, version=version, manifest=manifest, created_at=rows.T0)
    return version


@dataclass
class Scheduler:
    """The scheduler's side of one test."""

    executor: CeleryExecutor
    queue: str
    ledger: Path

    def stored(self, dag: Dag, files: Mapping[str, str]) -> DagModel:
        rows.default_pool()
        version = bundle(files)
        return rows.store(dag, fileloc="/nowhere/dag.py", relative_fileloc="dag.py", bundle_version=version)

    def queued(self, run: DagRun, *task_ids: str) -> list[HandOut]:
        found = TaskInstance.objects.filter(dag_run=run).order_by("id")
        ids = list((found.filter(task_id__in=task_ids) if task_ids else found).values_list("id", flat=True))
        now = db.clock()
        transitions.tasks("schedule", ids, now)
        transitions.tasks("queue", ids, now)
        found = TaskInstance.objects.filter(id__in=ids).order_by("id").values_list("id", "fence")
        return [HandOut(ti_id, fence, queue=self.queue) for ti_id, fence in found]

    def hand_out(self, batch: list[HandOut]) -> None:
        """Returns when the broker has confirmed each of them."""
        left = list(batch)

        def all_taken() -> bool:
            left[:] = self.executor.accept(left) if left else []
            return not left

        wait_for(all_taken)

    def lines(self) -> list[str]:
        """What the attempts wrote: "begin task" and "end task"."""
        return self.ledger.read_text().splitlines()


@pytest.fixture(
    params=[pytest.param("redis", marks=pytest.mark.redis), pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)]
)
def broker_url(request: pytest.FixtureRequest) -> str:
    url = service_url(request.param)
    return urlunsplit(urlsplit(url)._replace(path=f"/{REDIS_DATABASE}")) if request.param == "redis" else url


@pytest.fixture
def wire(broker_url: str) -> Iterator[Wire]:
    made = Wire(broker_url)
    yield made
    made.close()


@pytest.fixture
def workers(broker_url: str, wire: Wire, tmp_path: Path, transactional_db: None) -> Iterator[Workers]:
    """Asks for the database, so that it is emptied after the workers are gone and not before."""
    params = connection.get_connection_params()
    user = params.get("user", "postgres") + (f":{params['password']}" if params.get("password") else "")
    address = f"{params.get('host') or '127.0.0.1'}:{params.get('port') or 5432}"
    ledger = tmp_path / "ledger"
    ledger.touch()
    queue = f"test-{uuid.uuid4().hex[:8]}"
    environ = environment(f"postgresql://{user}@{address}/{params['dbname']}", ledger)
    made = Workers(wire.url, queue, tmp_path, environ)
    with cleared(broker_url, queue):
        yield made
        made.stop()


@pytest.fixture
def scheduler(workers: Workers, wire: Wire, tmp_path: Path) -> Iterator[Scheduler]:
    executor = CeleryExecutor(replace(conf(), executor="CeleryExecutor", celery_broker_url=wire.url))
    executor.start(0)
    yield Scheduler(executor, workers.queue, tmp_path / "ledger")
    executor.stop(0)


def ti_of(run: DagRun, task_id: str) -> TaskInstance:
    return TaskInstance.objects.get(dag_run=run, task_id=task_id)


def state_of(run: DagRun, task_id: str) -> Any:
    return ti_of(run, task_id).state
