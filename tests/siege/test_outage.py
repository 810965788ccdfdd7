"""The database goes away for a moment under every kind of process; ``python -m tests.siege.outage`` does it longer."""

from __future__ import annotations

import json
import re
import signal

import pytest

from .outage import Accounts, play


@pytest.fixture(scope="module")
def after(tmp_path_factory: pytest.TempPathFactory, redis_url: str) -> Accounts:
    """What was found after three seconds without it: a scheduler's lease is over by then, an attempt's time is not."""
    return play(tmp_path_factory.mktemp("outage"), 3, signal.SIGQUIT, redis_url)


@pytest.mark.redis
@pytest.mark.processes
def test_every_process_lives_through_it(after: Accounts) -> None:
    """Scheduler, processor, triggerer, web, Celery worker, and the runners of scheduler and worker."""
    assert (after.processes, after.dead) == (7, [])


@pytest.mark.redis
@pytest.mark.processes
def test_what_ran_meanwhile_is_not_done_again_and_everything_ends(after: Accounts) -> None:
    assert (after.run_state, after.tasks) == ("success", 22)
    assert (after.retried, after.doubled, after.lost) == (0, 0, 0)


@pytest.mark.redis
@pytest.mark.processes
def test_F_03_each_process_tells_an_operator_what_it_does(after: Accounts) -> None:
    """By SIGUSR2: phases, leases, executors, attempts, triggers, and the stack of every thread."""
    assert sorted(after.told) == ["processor", "runner of scheduler1", "runner of worker1", "scheduler1", "triggerer"]
    scheduler, runner = after.told["scheduler1"], after.told["runner of scheduler1"]
    assert "lease: SchedulerJob" in scheduler
    assert "phase schedule_tasks: last run" in scheduler
    assert "executor CeleryExecutor:" in scheduler
    assert re.search(r"^attempt .*long_local_0.*: pid \d+$", runner, re.M)
    assert "database: there" in runner
    assert "triggerer: 1 triggers in 1 processes" in after.told["triggerer"]
    assert "DAG processor: bundles dags" in after.told["processor"]
    assert all("── thread MainThread" in text for text in after.told.values())


@pytest.mark.redis
@pytest.mark.processes
def test_the_web_says_so_meanwhile(after: Accounts) -> None:
    statuses = {path: status for path, (status, _) in after.said.items()}
    assert statuses == {"/healthz": 503, "/dags/": 503, "/api/v2/dags": 503, "/api/v2/monitor/health": 200}
    assert "The database does not answer" in after.said["/dags/"][1]
    assert json.loads(after.said["/api/v2/dags"][1]) == {"detail": "The database does not answer; try again."}
    assert json.loads(after.said["/api/v2/monitor/health"][1])["metadatabase"] == {"status": "unhealthy"}
