"""What may go wrong around a pass of the loop: a refused statement, a stop in the middle, a neighbour installation."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg2
import pytest
from django.db import OperationalError

from scheduler_app import metrics
from scheduler_app.executors.base import HandOut, Lost
from scheduler_app.models import DagRun, Job, Pool, TaskInstance, db, locks, prepared
from scheduler_app.scheduler import process
from scheduler_app.scheduler.loop import PHASES, PROBE
from scheduler_app.scheduler.process import Options, SchedulerProcess
from tests.scheduler.scene import Ledger, Scene
from tests.shapes import chain, parallel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    return Scene()


@contextmanager
def refused(number: int) -> Iterator[list[str]]:
    """The database goes away at the statement of this number, once; yields the statements so far."""
    said: list[str] = []

    def wrapper(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        said.append(sql)
        if len(said) == number:
            raise OperationalError("server closed the connection unexpectedly") from psycopg2.OperationalError()
        return execute(sql, params, many, context)

    with db.connection().execute_wrapper(wrapper):
        yield said


def test_S_30_whichever_statement_of_a_pass_is_refused_the_loop_goes_on_and_nothing_is_lost(scene: Scene) -> None:
    """Also while rows are read: there is no lazy query whose error would come after the boundary."""
    dag = scene.dag(chain(2, "dag", tasks={"t0": {"retries": 1, "retry_delay": 0.0}}))
    probe = prepared._form(PROBE)
    number, refusals = 0, 0
    while True:
        number += 1
        (run,) = scene.runs(dag, 1, prefix=f"n{number}_")
        with refused(number) as said:
            for _ in range(2):
                try:
                    scene.tick()
                except OperationalError:  # the process waits it out
                    assert any(text in said[number - 1] for text in (probe.text, probe.label))
        if len(said) < number:
            break
        refusals += 1
        scene.play(run)
        assert scene.states(run) == {"t0": "success", "t1": "success"}, said[number - 1]
    assert refusals > 10


def test_S_17_a_pass_that_changed_something_says_so_also_when_executors_had_told_it(scene: Scene) -> None:
    """The loop sleeps only after a pass that says it did nothing."""
    columns = ("pk", "state", "fence", "try_number", "handed_out_at")

    def rows() -> list[Any]:
        return [*TaskInstance.objects.order_by("pk").values_list(*columns), *DagRun.objects.values_list("pk", "state")]

    run = scene.run(scene.dag(chain(2, "dag", tasks={"t0": {"retries": 1, "retry_delay": 0.0}})))
    for step in range(12):
        before = rows()
        did = scene.tick()
        assert bool(did) or rows() == before
        if step == 4:
            scene.begin(scene.task(run, "t0"))
            scene.die(scene.task(run, "t0"))
            assert scene.phase("sync_executors") == 1
    assert scene.task(run, "t0").try_number == 1
    assert scene.task(run, "t0").state == "queued"


class Remote(Ledger):
    """An executor on the other side of a network: whoever calls it with rows locked holds everybody up."""

    def __init__(self) -> None:
        super().__init__(100, "Remote")
        self.called: set[str] = set()

    def _call(self, name: str) -> None:
        self.called.add(name)
        assert not db.connection().in_atomic_block, f"{name} was called inside a transaction"

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        self._call("accept")
        return super().accept(batch)

    def lost(self) -> list[Lost]:
        self._call("lost")
        return super().lost()

    def cancel(self, batch: Sequence[HandOut]) -> None:
        self._call("cancel")

    def adopt(self, batch: Sequence[HandOut]) -> list[HandOut]:
        self._call("adopt")
        return []


def test_S_51_no_executor_is_asked_or_told_anything_while_rows_are_locked(scene: Scene) -> None:
    remote = Remote()
    scene.executor, scene.executors = remote, {remote.name: remote}
    errors = metrics.PHASE_ERRORS
    before = {phase.name: errors.labels(phase.name)._value.get() for phase in PHASES}
    run = scene.run(scene.dag(parallel(3)))
    scene.tick()
    scene.begin(scene.task(run, "p0"))
    scene.die(scene.task(run, "p0"))
    # the scheduler that queued them is dead, and another one takes over what had not begun
    dead, scene.job = scene.job, scene.new_job()
    Job.objects.filter(pk=dead.pk).update(state="failed", end_date=scene.now)
    scene.wait(scene.conf.lease_seconds)
    scene.settle()
    assert remote.called >= {"accept", "lost"}
    assert {phase.name: errors.labels(phase.name)._value.get() for phase in PHASES} == before
    assert scene.states(run) == {"p0": "failed", "p1": "queued", "p2": "queued"}
    assert len(remote.handed) == 5


class Stops(Ledger):
    """SIGTERM arrives while this executor is given its hand-outs: in the middle of a pass."""

    def __init__(self) -> None:
        super().__init__(100, "Stops")
        self.process: SchedulerProcess | None = None
        self.drained: list[float] = []

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        assert self.process is not None
        self.process._on_stop(signal.SIGTERM, None)
        return super().accept(batch)

    def stop(self, drain_seconds: float) -> None:
        self.drained.append(drain_seconds)


def test_S_65_a_signal_stops_the_loop_between_two_passes_and_drains_its_executors(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SchedulerProcess, "_take_signals", lambda self: None)
    run = scene.run(scene.dag(parallel(3)))
    executor = Stops()
    scheduler = executor.process = SchedulerProcess(scene.conf, Options(), {executor.name: executor})
    scheduler.run()
    assert len(executor.handed) == 3
    # what was handed out is stamped as such: the pass went on to its end
    assert TaskInstance.objects.filter(dag_run=run, state="queued", handed_out_at__isnull=False).count() == 3
    assert executor.drained == [scene.conf.stop_seconds / 2]
    job = Job.objects.exclude(pk=scene.job.pk).get()
    assert (job.job_type, job.state) == ("SchedulerJob", "success")


def test_S_65_the_second_signal_does_not_wait(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(process.os, "_exit", ended.append)
    scheduler = SchedulerProcess(scene.conf, Options(), scene.executors)
    scheduler._on_stop(signal.SIGTERM, None)
    assert ended == []
    scheduler._on_stop(signal.SIGTERM, None)
    assert ended == [128 + signal.SIGTERM]
    scheduler.bell.close()


@contextmanager
def in_schema(name: str) -> Iterator[Any]:
    """A transaction of another connection whose tables are those of this schema."""
    connection = psycopg2.connect(**{**db.connection().get_connection_params(), "cursor_factory": None})
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(f"SET search_path TO {name}")
            yield cursor
    finally:
        connection.close()


def test_S_61_two_installations_in_one_database_do_not_take_each_others_locks(scene: Scene) -> None:
    """Each in a schema of its own, as a host project may have it."""
    db.execute("DROP SCHEMA IF EXISTS neighbour CASCADE")
    db.execute("CREATE SCHEMA neighbour")
    for table in ("scheduler_task_instance", "scheduler_job", "scheduler_source_blob"):
        db.execute(f"CREATE TABLE neighbour.{table} (id bigint)")
    try:
        with in_schema("neighbour") as theirs, in_schema("public") as ours:
            theirs.execute(locks.ADMISSION)
            assert theirs.fetchone() == ("true",)
            theirs.execute(locks.BUNDLES)
            theirs.execute(locks.BLOBS)
            ours.execute(locks.ADMISSION)
            assert ours.fetchone() == ("true",)
            ours.execute("SET lock_timeout = '2s'")
            ours.execute(locks.BUNDLES)
            ours.execute(locks.BLOBS)
            # and within one installation only one may
            with db.atomic():
                assert db.fetch(locks.ADMISSION) == [("false",)]
    finally:
        db.execute("DROP SCHEMA neighbour CASCADE")


def test_S_56_S_57_gauges_show_every_pool_and_every_reason_also_when_nothing_is_left(scene: Scene) -> None:
    def value(gauge: Any, *labels: str) -> float:
        return float(gauge.labels(*labels)._value.get())

    scene.pool("narrow", 1)
    scene.pool("idle", 7)
    run = scene.run(scene.dag(parallel(3, "dag", tasks={"*": {"pool": "narrow"}})))
    scene.tick()
    scene.begin(scene.task(run, "p0"))
    scene.phase("queue_tasks", "sample_metrics")
    assert value(metrics.TASK_STATES, "running") == 1
    assert value(metrics.POOL_SLOTS, "narrow", "running") == 1
    assert value(metrics.POOL_SLOTS, "narrow", "open") == 0
    assert value(metrics.POOL_SLOTS, "idle", "open") == 7
    assert value(metrics.TASKS_REFUSED, "pool_full") == 2
    Pool.objects.filter(pool="narrow").update(slots=9)
    scene.end(scene.task(run, "p0"))
    scene.phase("queue_tasks", "sample_metrics")
    assert value(metrics.TASK_STATES, "running") == 0
    assert value(metrics.POOL_SLOTS, "narrow", "running") == 0
    assert value(metrics.TASKS_REFUSED, "pool_full") == 0
