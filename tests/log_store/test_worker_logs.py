"""A Celery worker's log, read on another machine while the task runs and when the worker is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduler_app import attempt_log
from scheduler_app.conf import Conf
from scheduler_app.log_store.reading import open_log
from tests import rows
from tests.executors.brokers import Wire, Workers, wait_for
from tests.executors.conftest import Scheduler, broker_url, scheduler, wire, workers
from tests.shapes import shape

__all__ = ["broker_url", "scheduler", "wire", "workers"]
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

FILES = {
    "dag.py": """
import os
import time
from datetime import datetime

from airflow.sdk import dag, task


@dag(schedule=None, start_date=datetime(2024, 1, 1))
def talks():
    @task
    def work():
        print("I have begun")
        while not os.path.exists(os.environ["LEDGER"] + ".go"):
            time.sleep(0.05)
        print("and this is all")

    work()


talks()
"""
}


@pytest.mark.redis
@pytest.mark.parametrize("broker_url", ["redis"], indirect=True)
def test_a_workers_log_is_followed_from_here_and_outlives_the_worker(
    scheduler: Scheduler, workers: Workers, wire: Wire, tmp_path: Path
) -> None:
    workers.environ["SCHEDULER_LOG_UPLOAD_SECONDS"] = "0.2"
    worker = workers.start()
    (run,) = rows.trigger(scheduler.stored(shape("work", "talks"), FILES))
    scheduler.hand_out(scheduler.queued(run))
    here = Conf(log_folder=tmp_path / "web")
    file = attempt_log.path(here.log_folder, "talks", run.run_id, "work", -1, 1)

    def said(text: str) -> bool:
        source = open_log(here, file)
        return source is not None and text.encode() in source.read(0, source.size)

    wait_for(lambda: said("I have begun"), 60)
    assert not said("and this is all")
    Path(f"{scheduler.ledger}.go").touch()
    wait_for(lambda: said("The task succeeded."))
    workers.kill(worker)
    assert said("I have begun")
    assert said("and this is all")
