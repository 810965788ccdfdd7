"""Time-outs, cancelling, a database that is away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg2
import pytest
from django.db import OperationalError

from runner.conftest import Place, ti_of, until, xcom_of
from scheduler_app import process_tree
from scheduler_app.conf import Conf
from scheduler_app.executors.inline import InlineExecutor
from scheduler_app.models import db as database
from scheduler_app.runner import heartbeats, outcomes
from tests import rows
from tests.shapes import shape

pytestmark = [pytest.mark.django_db, pytest.mark.processes]


def test_a_task_that_is_deaf_to_its_time_out_is_killed_with_its_tree(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        @task(execution_timeout=timedelta(seconds=0.2))
        def work():
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM, signal.SIGTERM})
            subprocess.Popen("sleep 1008 & sleep 1009", shell=True)
            time.sleep(1000)
        work()
        """
    )
    dag = shape("work", tasks={"work": {"execution_timeout": 0.2, "retries": 1, "retry_delay": 0.0}})
    (run,) = rows.trigger(place.stored(dag, path))
    executor.accept(place.queued(run))
    until(executor.step, lambda: ti_of(run, "work").pid is not None)
    pid = ti_of(run, "work").pid
    assert pid is not None
    until(executor.step, lambda: len(process_tree.descendants(pid)) == 3)
    pids = [pid, *process_tree.descendants(pid)]
    executor.drain()
    ti = ti_of(run, "work")
    assert ti.state == "up_for_retry"
    assert ti.reason == (
        "It ran longer than its execution_timeout of 0.2 s; its process was killed by signal 9 (SIGKILL)."
    )
    assert [number for number in pids if process_tree.is_alive(number)] == []


def test_a_task_that_hears_its_time_out_fails_by_itself(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        BashOperator(task_id="work", bash_command="sleep 1010", execution_timeout=timedelta(seconds=0.3))
        """
    )
    dag = shape("work", tasks={"work": {"execution_timeout": 0.3}})
    (run,) = rows.trigger(place.stored(dag, path))
    executor.accept(place.queued(run))
    executor.drain()
    ti = ti_of(run, "work")
    assert ti.state == "failed"
    assert "AirflowTaskTimeout" in ti.reason


def test_a_cancelled_task_hears_of_it_and_may_clean_up(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        class Polite(BashOperator):
            def on_kill(self):
                print("cleaned up")
                super().on_kill()
        Polite(task_id="work", bash_command="echo started; sleep 1011")
        """
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    (hand_out,) = place.queued(run)
    executor.accept([hand_out])
    until(executor.step, lambda: ti_of(run, "work").try_number == 1 and "started" in place.log(ti_of(run, "work")))
    executor.cancel([hand_out])
    executor.drain()
    ti = ti_of(run, "work")
    assert ti.state == "failed"
    assert "cleaned up" in place.log(ti)
    assert "The task is stopped: the executor was told to cancel it." in place.log(ti)


def test_a_hand_out_that_waits_is_cancelled_without_a_trace(place: Place, executor: InlineExecutor) -> None:
    (run,) = rows.trigger(place.stored(shape("work"), place.file("")))
    batch = place.queued(run)
    executor.accept(batch)
    executor.cancel(batch)
    executor.drain()
    assert rows.states(run) == {"work": "queued"}


def away(times: int) -> Callable[..., Any]:
    """The outcomes' write, which finds the server shutting down so many times first."""
    left = [times]
    real = outcomes.write

    def write(*args: Any) -> Any:
        if left[0]:
            left[0] -= 1
            error = OperationalError("terminating connection due to administrator command")
            error.__cause__ = psycopg2.OperationalError()
            raise error
        return real(*args)

    return write


def test_an_outcome_survives_a_database_that_is_away(
    place: Place, executor: InlineExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.file("@task\ndef work():\n    return 'kept'\nwork()\n")
    (run,) = rows.trigger(place.stored(shape("work"), path))
    monkeypatch.setattr(outcomes, "write", away(2))
    monkeypatch.setattr(database, "close", lambda: None)
    executor.accept(place.queued(run))
    executor.drain()
    assert rows.states(run) == {"work": "success"}
    assert xcom_of(run, "work") == "kept"


def test_a_request_survives_a_database_that_is_away(
    place: Place, executor: InlineExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scheduler_app.runner import answers

    real, left = answers.answer, [1]

    def answer(*args: Any) -> Any:
        if left:
            left.clear()
            raise OperationalError("server closed the connection unexpectedly")
        return real(*args)

    path = place.file(
        "from airflow.sdk import Variable\n@task\ndef work():\n    return Variable.get('x', default='none')\nwork()\n"
    )
    (run,) = rows.trigger(place.stored(shape("work"), path))
    monkeypatch.setattr(answers, "answer", answer)
    monkeypatch.setattr(database, "close", lambda: None)
    executor.accept(place.queued(run))
    executor.drain()
    assert xcom_of(run, "work") == "none"


def test_an_unforeseen_error_of_one_step_does_not_end_the_runner(
    place: Place, executor: InlineExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, left = outcomes.write, [1]

    def write(*args: Any) -> Any:
        if left:
            left.clear()
            raise ZeroDivisionError
        return real(*args)

    path = place.file("@task\ndef work(): pass\nwork()\n")
    (run,) = rows.trigger(place.stored(shape("work"), path))
    monkeypatch.setattr(outcomes, "write", write)
    executor.accept(place.queued(run))
    executor.drain()
    assert rows.states(run) == {"work": "success"}


@pytest.mark.parametrize("kind", [OverflowError, AttributeError, RecursionError])
def test_a_report_that_can_never_be_written_fails_its_task_and_holds_up_no_other(
    place: Place, executor: InlineExecutor, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    real = outcomes.write

    def write(reports: Any, now: Any) -> Any:
        if any(report.claim.task_id == "bad" and report.outcome for report in reports):
            raise kind("no such day")
        return real(reports, now)

    path = place.file("@task\ndef bad(): pass\n@task\ndef good(): pass\nbad()\ngood()\n")
    (run,) = rows.trigger(place.stored(shape("bad; good"), path))
    monkeypatch.setattr(outcomes, "write", write)
    executor.accept(place.queued(run))
    executor.drain()
    assert rows.states(run) == {"bad": "failed", "good": "success"}
    assert ti_of(run, "bad").reason.startswith("What the task pushed cannot be stored: no such day")


def test_a_process_that_talks_nonsense_is_ended_and_the_others_go_on(place: Place, executor: InlineExecutor) -> None:
    path = place.file(
        """
        @task
        def babbles():
            import socket
            for fd in os.listdir("/proc/self/fd"):
                try:
                    wire = socket.socket(fileno=int(fd))
                    wire.sendall(b"\\0\\0\\0\\x11" + b'{"op":"set_xcom"}')
                    wire.detach()
                except OSError:
                    continue
            time.sleep(60)
        @task
        def works():
            return "fine"
        babbles()
        works()
        """
    )
    (run,) = rows.trigger(place.stored(shape("babbles; works"), path))
    executor.accept(place.queued(run))
    executor.drain()
    assert rows.states(run) == {"babbles": "failed", "works": "success"}


def test_an_attempt_ends_when_nobody_could_hear_that_it_lives_and_says_so(
    place: Place, knobs: Conf, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.file("@task\ndef work():\n    print('ready')\n    time.sleep(1000)\nwork()\n")
    (run,) = rows.trigger(place.stored(shape("work"), path))
    executor = InlineExecutor(replace(knobs, task_heartbeat_timeout_seconds=0.5))
    executor.start(0)
    try:
        executor.accept(place.queued(run))
        until(executor.step, lambda: "ready" in place.log(ti_of(run, "work"), 1))

        def away(*_: Any) -> None:
            raise OperationalError("server closed the connection unexpectedly")

        monkeypatch.setattr(heartbeats, "beat", away)
        monkeypatch.setattr(database, "close", lambda: None)
        executor.drain()
    finally:
        executor.stop(0)
    ti = ti_of(run, "work")
    assert ti.state == "failed"
    assert ti.reason.startswith("The database was away for longer than task_heartbeat_timeout_seconds")
