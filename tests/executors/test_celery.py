"""The Celery executor through real brokers: what runs, what comes twice, who dies, what is cut, what is taken back."""

from __future__ import annotations

import contextlib
import signal
import textwrap
from dataclasses import replace

import pytest

from scheduler_app.executors.base import HandOut
from scheduler_app.models import DagModel, Job, TaskInstance, db, transitions
from tests import rows
from tests.shapes import parallel, shape

from .brokers import Wire, Workers, wait_for
from .conftest import Scheduler, bundle, state_of, ti_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.processes]

#: What no broker has a part in is shown with one of them.
once = pytest.mark.parametrize("broker_url", ["redis"], indirect=True)

DAG = """\
import os, time
from airflow.sdk import DAG, task
from parts.words import WORD

def note(text):
    with open(os.environ["LEDGER"], "a") as file:
        file.write(text + "\\n")

with DAG("dag", schedule=None):
"""


def files(body: str, word: str = "first") -> dict[str, str]:
    """A DAG file that imports a module of a package beside it."""
    return {
        "dag.py": DAG + textwrap.indent(textwrap.dedent(body), "    "),
        "parts/__init__.py": "",
        "parts/words.py": f"WORD = {word!r}\n",
    }


SAY = """
for n in range(6):
    @task(task_id=f"p{n}")
    def say(ti=None):
        note(f"{ti.task_id} {WORD}")
    say()
"""

#: Says that it began, and ends when a file of its name appears.
WAIT = """
for name in ("p0", "p1", "p2"):
    @task(task_id=name)
    def wait(ti=None):
        note(f"begin {ti.task_id}")
        while not os.path.exists(os.environ["LEDGER"] + "." + ti.task_id):
            time.sleep(0.02)
        note(f"end {ti.task_id}")
    wait()
"""


def release(scheduler: Scheduler, task_id: str) -> None:
    scheduler.ledger.with_suffix(f".{task_id}").touch()


def test_workers_without_a_dag_folder_run_a_package_and_what_comes_twice_starts_once(
    scheduler: Scheduler, workers: Workers
) -> None:
    workers.start(2)
    dag = scheduler.stored(parallel(6, "dag"), files(SAY))
    (run,) = rows.trigger(dag, bundle_version=dag.bundle_version)
    batch = scheduler.queued(run)
    assert scheduler.executor.slots_available() == 2
    scheduler.hand_out(batch)
    scheduler.hand_out(batch)  # as after a crash before the stamp
    wait_for(lambda: set(rows.states(run).values()) == {"success"})
    scheduler.hand_out(batch)  # as a broker that delivers again
    (other,) = rows.trigger(dag, prefix="other", bundle_version=dag.bundle_version)
    scheduler.hand_out(scheduler.queued(other, "p0"))
    wait_for(lambda: state_of(other, "p0") == "success")
    assert sorted(scheduler.lines()) == sorted([f"p{n} first" for n in range(6)] + ["p0 first"])
    job = Job.objects.get(job_type="CeleryWorkerJob")
    assert (job.executor_class, job.detail["slots"], job.detail["queues"]) == ("CeleryExecutor", 2, [workers.queue])
    assert set(TaskInstance.objects.filter(dag_run=run).values_list("job_id", flat=True)) == {job.pk}


def begins_at_last(scheduler: Scheduler, batch: list[HandOut], lines: list[str]) -> None:
    """A message that was under way when the wire was cut may be lost: it is told again, as the watchdog does it, and
    the fence lets it begin once."""
    for _ in range(6):
        scheduler.hand_out(batch)
        with contextlib.suppress(AssertionError):
            wait_for(lambda: scheduler.lines() == lines, 10.0)
            return
    raise AssertionError(f"{scheduler.lines()} instead of {lines}")


def test_a_cut_wire_is_mended_on_both_sides_and_a_task_that_runs_goes_on(
    scheduler: Scheduler, workers: Workers, wire: Wire
) -> None:
    workers.start(2)
    (run,) = rows.trigger(scheduler.stored(parallel(3, "dag"), files(WAIT)))
    scheduler.hand_out(scheduler.queued(run, "p0"))
    wait_for(lambda: scheduler.lines() == ["begin p0"])
    assert wire.cut() >= 4
    begins_at_last(scheduler, scheduler.queued(run, "p1"), ["begin p0", "begin p1"])
    release(scheduler, "p0")
    release(scheduler, "p1")
    wait_for(lambda: (state_of(run, "p0"), state_of(run, "p1")) == ("success", "success"))
    assert sorted(scheduler.lines()) == ["begin p0", "begin p1", "end p0", "end p1"]


def test_a_killed_worker_leaves_nobody_and_its_task_is_tried_again_elsewhere(
    scheduler: Scheduler, workers: Workers
) -> None:
    first = workers.start(2)
    dag = shape("p0; p1; p2", "dag", tasks={"*": {"retries": 3, "retry_delay": 0.0}})
    (run,) = rows.trigger(scheduler.stored(dag, files(WAIT)))
    scheduler.hand_out(scheduler.queued(run, "p0"))
    wait_for(lambda: scheduler.lines() == ["begin p0"])
    workers.kill(first)
    ti = ti_of(run, "p0")
    assert (ti.state, ti.reason.partition(".")[0]) == ("up_for_retry", "The Celery worker died")
    workers.start(2)
    release(scheduler, "p0")
    scheduler.hand_out(scheduler.queued(run, "p0"))
    wait_for(lambda: state_of(run, "p0") == "success")
    assert scheduler.lines() == ["begin p0", "begin p0", "end p0"]
    assert ti_of(run, "p0").try_number == 2


def test_what_is_taken_back_stops_when_it_runs_and_never_starts_when_it_waits(
    scheduler: Scheduler, workers: Workers
) -> None:
    workers.start(1)
    (run,) = rows.trigger(scheduler.stored(parallel(3, "dag"), files(WAIT)))
    (running,) = scheduler.queued(run, "p0")
    scheduler.hand_out([running])
    wait_for(lambda: scheduler.lines() == ["begin p0"])
    (waiting,) = scheduler.queued(run, "p1")
    scheduler.hand_out([waiting])
    scheduler.executor.cancel([waiting])
    scheduler.executor.cancel([running])
    wait_for(lambda: state_of(run, "p0") == "failed")
    release(scheduler, "p2")
    scheduler.hand_out(scheduler.queued(run, "p2"))
    wait_for(lambda: state_of(run, "p2") == "success")
    assert scheduler.lines() == ["begin p0", "begin p2", "end p2"]
    assert state_of(run, "p1") == "queued"


def test_a_full_worker_sends_messages_back_for_one_that_is_free(scheduler: Scheduler, workers: Workers) -> None:
    workers.start(1)
    (run,) = rows.trigger(scheduler.stored(parallel(3, "dag"), files(WAIT)))
    scheduler.hand_out(scheduler.queued(run, "p0"))
    wait_for(lambda: scheduler.lines() == ["begin p0"])
    scheduler.hand_out(scheduler.queued(run, "p1"))
    workers.start(1)
    wait_for(lambda: scheduler.lines() == ["begin p0", "begin p1"])
    release(scheduler, "p0")
    release(scheduler, "p1")
    wait_for(lambda: (state_of(run, "p0"), state_of(run, "p1")) == ("success", "success"))


@once
def test_a_run_keeps_the_files_that_it_began_with_where_the_settings_say_so(
    scheduler: Scheduler, workers: Workers
) -> None:
    dag = scheduler.stored(parallel(6, "dag"), files(SAY, "first"))
    (run,) = rows.trigger(dag, bundle_version=dag.bundle_version)
    newest = bundle(files(SAY, "second"))
    DagModel.objects.update(bundle_version=newest)
    follows = workers.start(1)
    scheduler.hand_out(scheduler.queued(run, "p0"))
    wait_for(lambda: state_of(run, "p0") == "success")
    workers.kill(follows)
    workers.environ["SCHEDULER_RUNS_FOLLOW_NEWEST_VERSION"] = "false"
    workers.start(1)
    scheduler.hand_out(scheduler.queued(run, "p1"))
    wait_for(lambda: state_of(run, "p1") == "success")
    assert scheduler.lines() == ["p0 second", "p1 first"]


@once
def test_a_warm_stop_lets_tasks_end_and_takes_no_more(scheduler: Scheduler, workers: Workers) -> None:
    worker = workers.start(2)
    (run,) = rows.trigger(scheduler.stored(parallel(3, "dag"), files(WAIT)))
    scheduler.hand_out(scheduler.queued(run, "p0"))
    wait_for(lambda: scheduler.lines() == ["begin p0"])
    worker.terminate()
    wait_for(lambda: "Warm shutdown" in workers.logs())
    release(scheduler, "p0")
    assert worker.wait(30) == 0
    assert scheduler.lines() == ["begin p0", "end p0"]
    assert state_of(run, "p0") == "success"
    assert Job.objects.get(job_type="CeleryWorkerJob").state == "success"
    assert scheduler.executor.slots_available() == 0


@once
def test_a_cold_stop_ends_tasks_at_once_and_says_so(scheduler: Scheduler, workers: Workers) -> None:
    worker = workers.start(1)
    (run,) = rows.trigger(scheduler.stored(parallel(3, "dag"), files(WAIT)))
    scheduler.hand_out(scheduler.queued(run, "p0"))
    wait_for(lambda: scheduler.lines() == ["begin p0"])
    scheduler.hand_out(scheduler.queued(run, "p1"))
    worker.send_signal(signal.SIGQUIT)
    worker.wait(10)
    assert (state_of(run, "p0"), state_of(run, "p1")) == ("failed", "queued")
    assert scheduler.lines() == ["begin p0"]
    assert Job.objects.get(job_type="CeleryWorkerJob").state == "success"


@once
def test_a_stop_interrupts_what_takes_longer_than_it_may_and_takes_no_try_from_it(
    scheduler: Scheduler, workers: Workers
) -> None:
    workers.environ["SCHEDULER_CELERY_SHUTDOWN_GRACE_SECONDS"] = "0.2"
    worker = workers.start(1)
    dag = shape("p0; p1; p2", "dag", tasks={"*": {"retries": 1, "retry_delay": 3600.0}})
    (run,) = rows.trigger(scheduler.stored(dag, files(WAIT)))
    scheduler.hand_out(scheduler.queued(run, "p0"))
    wait_for(lambda: scheduler.lines() == ["begin p0"])
    worker.terminate()
    assert worker.wait(30) == 0
    ti = ti_of(run, "p0")
    assert (ti.state, ti.try_number, ti.max_tries) == ("up_for_retry", 1, 2)
    assert ti.reason.startswith("The Celery worker was shut down. This try does not count;")


def test_a_fence_that_has_moved_on_is_refused(scheduler: Scheduler, workers: Workers) -> None:
    (run,) = rows.trigger(scheduler.stored(parallel(6, "dag"), files(SAY)))
    (stale,) = scheduler.queued(run, "p0")
    scheduler.hand_out([stale])
    now = db.clock()
    transitions.tasks("unqueue", [stale.ti_id], now, fences=[stale.fence])
    (fresh,) = scheduler.queued(run, "p0")
    assert fresh.fence == stale.fence + 1
    scheduler.hand_out([fresh])
    workers.start(2)
    wait_for(lambda: state_of(run, "p0") == "success")
    (other,) = rows.trigger(DagModel.objects.get(), prefix="other")
    scheduler.hand_out(scheduler.queued(other, "p1"))
    wait_for(lambda: state_of(other, "p1") == "success")
    assert scheduler.lines() == ["p0 first", "p1 first"]


def test_what_weighs_more_is_taken_from_the_broker_first(scheduler: Scheduler, workers: Workers) -> None:
    """They all wait when the worker comes, the lightest longest."""
    (run,) = rows.trigger(scheduler.stored(parallel(6, "dag"), files(SAY)))
    weights = {"p0": 1, "p1": 1, "p2": 10, "p3": 100, "p4": 1000, "p5": 3}
    scheduler.hand_out(
        [replace(one, priority=weight) for name, weight in weights.items() for one in scheduler.queued(run, name)]
    )
    workers.start(1)
    wait_for(lambda: set(rows.states(run).values()) == {"success"}, 60)
    order = [line.split()[0] for line in scheduler.lines()]
    assert order[:3] == ["p4", "p3", "p2"]
