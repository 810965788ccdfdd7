"""What a worker or a scheduler that could not work says before it ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import override_settings

ROOT = Path(__file__).resolve().parents[2]


def worker(tmp_path: Path, broker: str, *arguments: str) -> tuple[int, str]:
    """Exit code and last line of a worker."""
    environ = {**os.environ, "SCHEDULER_HOME": str(tmp_path), "SCHEDULER_CELERY_BROKER_URL": broker}
    command = [sys.executable, "-m", "celery", "-A", "scheduler_app", "worker", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr.strip().splitlines()[-1]


@pytest.mark.processes
@pytest.mark.parametrize("pool", ["solo", "threads"])
def test_a_worker_refuses_another_pool(tmp_path: Path, pool: str) -> None:
    text = "This worker brings its own pool, with a process for each task: start it without --pool (-P)."
    assert worker(tmp_path, "redis://127.0.0.1:1/0", "--pool", pool) == (1, text)


@pytest.mark.processes
def test_a_worker_asks_for_a_broker(tmp_path: Path) -> None:
    assert worker(tmp_path, "") == (1, "This worker has no broker: set SCHEDULER_CELERY_BROKER_URL.")


def test_a_scheduler_asks_for_a_broker_and_for_executors_that_exist() -> None:
    unset = {name: value for name, value in settings.SCHEDULER.items() if name != "celery_broker_url"}
    with override_settings(SCHEDULER=unset, CELERY_BROKER_URL=""):
        with pytest.raises(CommandError, match="needs a broker: set SCHEDULER_CELERY_BROKER_URL"):
            call_command("runscheduler", "--executor", "LocalExecutor,CeleryExecutor")
        with pytest.raises(CommandError, match="There is no executor 'Celery'; there are CeleryExecutor, Local"):
            call_command("runscheduler", "--executor", "LocalExecutor,Celery")
