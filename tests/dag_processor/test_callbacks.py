"""Callbacks of DAGs and tasks in real children: at least once, with their errors stored."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.db import OperationalError

from scheduler_app import attempt_log
from scheduler_app.conf import Conf
from scheduler_app.dag_processor import callbacks
from scheduler_app.dag_processor.callbacks import CallbackRunner
from scheduler_app.engine.dag import Dag, Task
from scheduler_app.models import Callback, DagRun, Job, TaskInstance
from scheduler_app.models import db as database
from scheduler_app.models.effect import CallbackQuerySet, Wanted
from tests.rows import T0, default_pool, store, trigger

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

FILE = """
import json, os, time
from datetime import datetime
from airflow import DAG
from airflow.operators.empty import EmptyOperator


def note(event):
    def call(context):
        error = context.get("exception")
        line = {
            "event": event,
            "run": context["run_id"],
            "try": context["ti"].try_number if event.startswith("task") else None,
            "error": f"{type(error).__name__}: {error}" if error else None,
        }
        with open(os.environ["CALLBACK_MARKS"], "a") as file:
            file.write(json.dumps(line) + "\\n")
        print("noted", event)

    return call


def broken(context):
    raise ValueError("no such channel\\0")


def die_once(context):
    mark = os.environ["CALLBACK_MARKS"] + ".died"
    if not os.path.exists(mark):
        open(mark, "w").close()
        os._exit(7)
    note("task_skipped")(context)


with DAG("calls", start_date=datetime(2024, 1, 1), schedule=None,
         on_success_callback=note("dag_success"), on_failure_callback=lambda context: time.sleep(60)):
    EmptyOperator(task_id="work", on_failure_callback=note("task_failure"), on_skipped_callback=die_once,
                  on_success_callback=[broken, note("second")])
"""


class World:
    def __init__(self, folder: Path) -> None:
        (folder / "calls.py").write_text(FILE)
        self.marks = folder / "marks"
        self.conf = Conf(
            log_folder=folder / "logs", callback_timeout_seconds=20, callback_attempts=2, callback_retry_seconds=10
        )
        default_pool()
        self.dag = store(
            Dag(dag_id="calls", tasks=(Task(task_id="work"),)),
            fileloc=str(folder / "calls.py"),
            relative_fileloc="calls.py",
        )
        self.run: DagRun = trigger(self.dag)[0]
        self.ti = TaskInstance.objects.get(dag_run=self.run)
        self.job = Job.objects.create(job_type="DagProcessorJob", start_date=T0, latest_heartbeat=T0)
        self.now = T0
        self.environ = {**os.environ, "CALLBACK_MARKS": str(self.marks)}
        self.runner = self.make_runner(self.conf)

    def make_runner(self, conf: Conf) -> CallbackRunner:
        return CallbackRunner(conf, self.environ, self.job.pk, time.monotonic)

    def want(self, kind: str, payload: dict[str, Any] | None = None, *, of_task: bool = True) -> Callback:
        key = f"{kind}:{Callback.objects.count()}"
        Callback.objects.want(
            [
                Wanted(kind, key, "calls", self.run.pk, payload or {}, self.ti.pk, 3)
                if of_task
                else Wanted(kind, key, "calls", self.run.pk, payload or {})
            ],
            self.now,
        )
        return Callback.objects.get(dedupe_key=key)

    def run_due(self, runner: CallbackRunner | None = None) -> int:
        """Everything that is due at ``now`` is run to its end; how many were started."""
        runner = runner or self.runner
        started = runner.start_due(["dags"], self.now)
        deadline = time.monotonic() + 20
        while runner.busy:
            assert time.monotonic() < deadline, "the callbacks did not end"
            runner.step(0.1, lambda: self.now)
        return started

    def noted(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.marks.read_text().splitlines()] if self.marks.exists() else []


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.runner.stop()


def facts(row: Callback) -> tuple[str, int, str | None]:
    row.refresh_from_db()
    return row.state, row.attempts, row.error


def test_a_failure_callback_gets_the_try_and_the_exception_and_its_output_is_in_the_log_of_the_try(world: World):
    error = {"type": "builtins.KeyError", "message": "'boom'", "traceback": "…"}
    row = world.want("task_failure", {"error": error})
    assert world.run_due() == 1
    assert world.noted() == [{"event": "task_failure", "run": "run0", "try": 3, "error": "KeyError: 'boom'"}]
    assert facts(row) == ("success", 1, None)
    log = attempt_log.path(world.conf.log_folder, "calls", "run0", "work", -1, 3)
    events = [line["event"] for line in attempt_log.read(log)[0]]
    assert events == ["noted task_failure", "The callback task_failure ran"]


def test_a_callback_of_a_run_gets_the_run(world: World):
    row = world.want("dag_success", {"reason": "success"}, of_task=False)
    assert world.run_due() == 1
    assert world.noted() == [{"event": "dag_success", "run": "run0", "try": None, "error": None}]
    assert facts(row) == ("success", 1, None)
    assert world.run_due() == 0


def test_what_a_callback_raises_is_stored_is_not_tried_again_and_does_not_stop_the_next_function(world: World):
    row = world.want("task_success")
    world.run_due()
    state, attempts, error = facts(row)
    assert (state, attempts) == ("failed", 1)
    assert error is not None
    assert error.endswith("ValueError: no such channel\\x00")
    assert [line["event"] for line in world.noted()] == ["second"]


def test_a_callback_whose_process_died_is_tried_again_after_a_wait(world: World):
    row = world.want("task_skipped")
    world.run_due()
    assert facts(row) == ("pending", 1, "Its process exited with code 7.")
    assert row.next_at == T0 + timedelta(seconds=10)
    assert world.run_due() == 0
    world.now += timedelta(seconds=10)
    assert world.run_due() == 1
    assert facts(row) == ("success", 2, None)
    assert [line["event"] for line in world.noted()] == ["task_skipped"]


def test_a_callback_that_takes_too_long_is_killed_and_given_up_after_its_attempts(world: World):
    runner = world.make_runner(
        Conf(log_folder=world.conf.log_folder, callback_timeout_seconds=1.0, callback_attempts=1)
    )
    row = world.want("dag_failure", of_task=False)
    world.run_due(runner)
    runner.stop()
    assert facts(row) == ("failed", 1, "It took longer than 1 s (callback_timeout_seconds).")


def test_the_same_change_asks_for_its_callback_once(world: World):
    wanted = Wanted("dag_success", "dag_success:1:0", "calls", world.run.pk, {})
    assert Callback.objects.want([wanted], T0) == 1
    assert Callback.objects.want([wanted], T0) == 0


def test_callbacks_of_bundles_that_are_not_ours_are_left_alone(world: World):
    world.want("dag_success", of_task=False)
    assert world.runner.start_due(["examples"], T0) == 0
    assert Callback.objects.get().state == "pending"


def test_callbacks_of_a_dead_process_are_due_again(world: World):
    row = world.want("dag_success", of_task=False)
    Callback.objects.claim_due(["dags"], world.job.pk, T0, 10)
    late = T0 + timedelta(seconds=world.conf.lease_seconds)
    assert world.runner.give_back_orphans(late - timedelta(seconds=1)) == 0
    assert world.runner.give_back_orphans(late) == 1
    row.refresh_from_db()
    assert (row.state, row.next_at, row.attempts) == ("pending", late, 1)


def test_a_stop_waits_for_a_running_callback_but_not_for_ever(world: World):
    quick, slow = world.want("dag_success", of_task=False), world.want("dag_failure", of_task=False)
    world.runner.start_due(["dags"], T0)
    world.runner.drain(3.0, lambda: T0)
    assert (facts(quick)[0], facts(slow)[0]) == ("success", "running")


def test_a_callback_that_the_database_refuses_to_describe_is_tried_again_and_keeps_no_place(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    def refuse(row: Callback) -> None:
        raise OperationalError("server closed the connection")

    row = world.want("dag_success", of_task=False)
    monkeypatch.setattr(callbacks, "describe", refuse)
    monkeypatch.setattr(database, "close", lambda: None)
    assert world.run_due() == 1
    assert facts(row) == ("pending", 1, "It could not be started: server closed the connection.")
    assert not world.runner.busy


def test_an_end_that_the_database_refuses_for_the_moment_is_stored_by_a_later_step(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    real, left = CallbackQuerySet.end, [1]

    def end(*args: Any, **kwargs: Any) -> bool:
        if left:
            left.clear()
            error = OperationalError("terminating connection due to administrator command")
            error.__cause__ = psycopg2.OperationalError()
            raise error
        return real(*args, **kwargs)

    row = world.want("dag_success", of_task=False)
    monkeypatch.setattr(CallbackQuerySet, "end", end)
    with pytest.raises(OperationalError):
        world.run_due()
    assert facts(row)[0] == "running"
    world.runner.step(0.1, lambda: world.now)
    assert facts(row) == ("success", 1, None)


def test_a_callback_whose_start_is_too_large_leaves_no_file_open(world: World):
    runner = world.make_runner(replace(world.conf, max_message_mb=1))
    world.run_due(runner)
    row = world.want("dag_success", {"reason": "x" * 2_000_000}, of_task=False)
    runner._running_base()
    before = set(os.listdir("/proc/self/fd"))
    world.run_due(runner)
    assert facts(row)[0] == "pending"
    assert "max_message_mb" in (facts(row)[2] or "")
    assert set(os.listdir("/proc/self/fd")) == before
    runner.stop()
