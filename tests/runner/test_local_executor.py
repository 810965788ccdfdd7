"""The local executor and its runner process: what is lost is told, what dies is replaced, nobody is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from runner.conftest import Place, ti_of
from scheduler_app import process_tree
from scheduler_app.conf import Conf
from scheduler_app.executors.local import LocalExecutor
from scheduler_app.models import Job, TaskInstance, TaskInstanceHistory, db, transitions
from tests import rows
from tests.shapes import parallel, shape

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]
ROOT = Path(__file__).resolve().parent.parent.parent

SLOW = """
@task
def work():
    subprocess.Popen("setsid sleep 1012 & sleep 1013", shell=True)
    print("ready")
    time.sleep(1000)
work()
"""


def wait_for(condition: Callable[[], Any], seconds: float = 20.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.01)
    return found


@pytest.fixture
def own_environment(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the runner process finds: this test's database and folders."""
    params = connection.get_connection_params()
    address = f"{params.get('host') or '127.0.0.1'}:{params.get('port') or 5432}"
    user = params.get("user", "postgres") + (f":{params['password']}" if params.get("password") else "")
    monkeypatch.setenv("DATABASE_URL", f"postgresql://{user}@{address}/{params['dbname']}")
    monkeypatch.setenv("SCHEDULER_LOG_FOLDER", str(place.logs))
    monkeypatch.setenv("SCHEDULER_TASK_HEARTBEAT_SECONDS", "0.2")
    monkeypatch.setenv("SCHEDULER_KILL_GRACE_SECONDS", "0.5")


@pytest.fixture
def local(knobs: Conf, own_environment: None, transactional_db: None) -> Iterator[LocalExecutor]:
    """Asks for the database, so that it is emptied after the runner is gone and not before."""
    made = LocalExecutor(replace(knobs, parallelism=4))
    made.start(0)
    yield made
    made.stop(0)


def test_more_work_than_slots_is_refused_and_done_later(place: Place, local: LocalExecutor) -> None:
    path = place.file("for n in range(10):\n    PythonOperator(task_id=f'p{n}', python_callable=lambda: 1)\n")
    (run,) = rows.trigger(place.stored(parallel(10, "dag"), path))
    assert local.slots_available() == 4
    left = place.queued(run)
    most = 0
    while left:
        left = local.accept(left)
        most = max(most, 4 - local.slots_available())
        time.sleep(0.005)
    wait_for(lambda: local.slots_available() == 4)
    assert set(rows.states(run).values()) == {"success"}
    assert most == 4
    assert local.lost() == []


def test_only_a_slot_where_there_was_none_or_a_loss_is_news(place: Place, local: LocalExecutor) -> None:
    body = """
    @task
    def work(n):
        while not os.path.exists(f"{__file__}.{n}"):
            time.sleep(0.005)
    for n in range(4):
        work.override(task_id=f"p{n}")(n)
    """
    path = place.file(body)
    (run,) = rows.trigger(place.stored(parallel(4, "dag"), path))
    hand_outs = place.queued(run)
    assert local.accept(hand_outs[:3]) == []
    wait_for(lambda: set(rows.states(run).values()) == {"running", "queued"})
    path.with_name("dag.py.0").touch()
    wait_for(lambda: local.describe()["occupied"] == 2 or local.has_news())
    assert (local.describe()["occupied"], local.has_news()) == (2, False)
    (again,) = rows.trigger(place.stored(parallel(2, "dag"), path), prefix="again")
    assert len(local.accept([*hand_outs[3:], *place.queued(again)])) == 1
    assert not local.has_news()
    path.with_name("dag.py.1").touch()
    wait_for(local.has_news)
    assert not local.has_news()
    os.kill(local.describe()["runner_pid"], signal.SIGKILL)
    wait_for(local.has_news)


def test_a_killed_runner_is_told_with_what_it_had_and_replaced(place: Place, local: LocalExecutor) -> None:
    path = place.file(SLOW)
    (run,) = rows.trigger(place.stored(shape("work"), path))
    (hand_out,) = place.queued(run)
    assert local.accept([hand_out]) == []
    wait_for(lambda: local.slots_available() == 3 and "ready" in place.log(ti_of(run, "work"), 1))
    first = local.describe()["runner_pid"]
    # the task says "ready" before its shell has started what it starts
    everyone = wait_for(lambda: len(found := process_tree.descendants(first)) >= 5 and found)
    os.kill(first, signal.SIGKILL)
    (lost,) = wait_for(local.lost)
    assert (lost.ti_id, lost.fence) == (hand_out.ti_id, hand_out.fence)
    assert lost.reason == (
        f"The runner, which watches over all tasks of an executor, died (pid {first}):"
        " its process was killed by signal 9 (SIGKILL)."
    )
    wait_for(lambda: not [pid for pid in everyone if process_tree.is_alive(pid)], seconds=2)
    wait_for(lambda: local.slots_available() == 4)
    assert local.describe()["runner_pid"] != first
    wait_for(lambda: local.slots_available() and local.describe()["runner_job_id"])
    assert Job.objects.filter(job_type="LocalTaskJob").count() == 2


def test_stopping_gives_back_what_waits_ends_what_runs_and_leaves_nobody(place: Place, local: LocalExecutor) -> None:
    path = place.file(SLOW)
    (run,) = rows.trigger(place.stored(shape("work"), path))
    local.accept(place.queued(run))
    wait_for(lambda: "ready" in place.log(ti_of(run, "work"), 1))
    pid = local.describe()["runner_pid"]
    everyone = [pid, *process_tree.descendants(pid)]
    local.stop(0.1)
    assert [number for number in everyone if process_tree.is_alive(number)] == []
    ti = ti_of(run, "work")
    assert ti.state == "failed"
    assert ti.reason == (
        "The scheduler was shut down.\nTry 1 of 1 failed; no try is left."
        " A task without retries is not begun again by itself: clear it if it may run twice."
    )
    job = Job.objects.get(job_type="LocalTaskJob")
    assert job.state == "success"
    assert job.end_date is not None
    assert job.end_date > job.start_date
    assert job.latest_heartbeat == job.end_date


def interrupted(place: Place, local: LocalExecutor, retries: int) -> TaskInstance:
    """A task that runs, of a DAG whose last try this is."""
    dag = shape("work", tasks={"work": {"retries": retries, "retry_delay": 3600.0}})
    (run,) = rows.trigger(place.stored(dag, place.file(SLOW)))
    TaskInstance.objects.filter(dag_run=run).update(max_tries=0)
    local.accept(place.queued(run))
    wait_for(lambda: "ready" in place.log(ti_of(run, "work"), 1))
    return ti_of(run, "work")


def test_a_shutdown_takes_no_try_from_a_task_that_has_retries(place: Place, local: LocalExecutor) -> None:
    ti = interrupted(place, local, retries=2)
    local.stop(0.1)
    ti.refresh_from_db()
    assert (ti.state, ti.try_number, ti.max_tries) == ("up_for_retry", 1, 1)
    assert ti.next_at == ti.end_date  # at once: its delay is for failures
    (kept,) = TaskInstanceHistory.objects.filter(task_instance=ti)
    assert (
        kept.reason
        == ti.reason
        == ("The scheduler was shut down. This try does not count; the next one begins as soon as a scheduler runs.")
    )


def test_a_signal_to_every_process_of_the_service_is_a_shutdown_too(place: Place, local: LocalExecutor) -> None:
    ti = interrupted(place, local, retries=2)
    runner = local.describe()["runner_pid"]
    for pid in [runner, *process_tree.descendants(runner)]:
        os.kill(pid, signal.SIGTERM)
    wait_for(lambda: ti_of(ti.dag_run, "work").state != "running")
    ti.refresh_from_db()
    assert (ti.state, ti.max_tries) == ("up_for_retry", 1)
    assert ti.reason.startswith("Every process of this service got SIGTERM at once (systemd: KillMode=mixed")


def test_a_signal_to_the_task_alone_is_a_failed_try(place: Place, local: LocalExecutor) -> None:
    ti = interrupted(place, local, retries=2)
    os.kill(wait_for(lambda: ti_of(ti.dag_run, "work").pid), signal.SIGTERM)
    wait_for(lambda: ti_of(ti.dag_run, "work").state != "running")
    ti.refresh_from_db()
    assert (ti.state, ti.max_tries) == ("failed", 0)


def test_kill_9_of_the_executors_own_process_leaves_nobody_and_ends_the_rows(
    place: Place, own_environment: None, tmp_path: Path
) -> None:
    path = place.file(SLOW)
    dag = shape("work", tasks={"work": {"retries": 3, "retry_delay": 0.0}})
    (run,) = rows.trigger(place.stored(dag, path))
    (hand_out,) = place.queued(run)
    program = f"""
import time
import django
django.setup()
from scheduler_app.conf import conf
from scheduler_app.executors.base import HandOut
from scheduler_app.executors.local import LocalExecutor
executor = LocalExecutor(conf())
executor.start(0)
executor.accept([HandOut({hand_out.ti_id}, {hand_out.fence})])
while True:
    executor.slots_available()
    time.sleep(0.05)
"""
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "DJANGO_SETTINGS_MODULE": "scheduler_app.settings"}
    scheduler = subprocess.Popen([sys.executable, "-c", program], env=environ, cwd=tmp_path, start_new_session=True)
    try:
        wait_for(lambda: "ready" in place.log(ti_of(run, "work"), 1))
        everyone = process_tree.descendants(scheduler.pid)
        assert len(everyone) >= 6  # runner, base, zygote, attempt, and its own
    finally:
        os.killpg(scheduler.pid, signal.SIGKILL)
        scheduler.wait()
    wait_for(lambda: not [pid for pid in everyone if process_tree.is_alive(pid)], seconds=2)
    ti = ti_of(run, "work")
    assert ti.state == "up_for_retry"
    assert ti.reason == "The scheduler died."


@pytest.mark.parametrize("verb", ["restart", "mark_failed"])
def test_an_attempt_whose_row_is_taken_stops_at_once_and_not_at_the_next_heartbeat(
    place: Place, knobs: Conf, own_environment: None, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.setenv("SCHEDULER_TASK_HEARTBEAT_SECONDS", "3600")
    path = place.file(
        """
        @task
        def work():
            print("ready")
            time.sleep(1000)
        work()
        """
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    local = LocalExecutor(replace(knobs, parallelism=4))
    local.start(0)
    try:
        local.accept(place.queued(run))
        wait_for(lambda: ti_of(run, "work").try_number == 1 and "ready" in place.log(ti_of(run, "work")))
        transitions.tasks(verb, [ti_of(run, "work").pk], db.clock())
        wait_for(lambda: local.slots_available() == 4)
    finally:
        local.stop(0)
    assert rows.states(run) == {"work": {"restart": "up_for_retry", "mark_failed": "failed"}[verb]}


def test_a_runner_listens_again_when_its_connection_was_cut(place: Place, local: LocalExecutor) -> None:
    others = "datname = current_database() AND pid <> pg_backend_pid()"
    path = place.file("@task\ndef work():\n    print('ready')\n    time.sleep(1000)\nwork()\n")
    (run,) = rows.trigger(place.stored(shape("work"), path))
    local.accept(place.queued(run))
    wait_for(lambda: ti_of(run, "work").try_number == 1 and "ready" in place.log(ti_of(run, "work")))
    runner = local.describe()["runner_pid"]
    assert db.fetch(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {others}") == [(1,)]
    transitions.tasks("mark_failed", [ti_of(run, "work").pk], db.clock())
    wait_for(lambda: local.slots_available() == 4)
    assert local.describe()["runner_pid"] == runner
