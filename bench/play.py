"""The scheduler alone, from created runs to success: the shapes, and one play of one of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.database import Server

UNLIMITED = 1_000_000


@dataclass(frozen=True)
class Shape:
    runs: int
    tasks: int

    @property
    def task_instances(self) -> int:
        return self.runs * self.tasks


SHAPES = {
    "chain_100x10": Shape(100, 10),
    "single_1000x1": Shape(1000, 1),
    "wide_20x102": Shape(20, 102),
    "parallel_1x1000": Shape(1, 1000),
}


@dataclass
class Stage:
    """One scheduler: its loop, its free executor, its job row, its random numbers."""

    loop: Any
    executor: Any
    job_id: int
    rng: random.Random = field(default_factory=lambda: random.Random(1))

    @classmethod
    def set(cls) -> Stage:
        from bench.free_executor import FreeExecutor
        from scheduler_app.models import Job, Pool, db
        from scheduler_app.scheduler.loop import Loop

        Pool.objects.filter(pool="default_pool").update(slots=-1)
        now = db.clock()
        job = Job.objects.create(job_type="SchedulerJob", start_date=now, latest_heartbeat=now)
        executor = FreeExecutor()
        executor.start(job.pk)
        return cls(Loop(), executor, job.pk)

    def tick(self, per_tick: int) -> bool:
        """One pass, and the ends of so many attempts; whether anything changed."""
        from scheduler_app.conf import conf
        from scheduler_app.scheduler.loop import probe
        from scheduler_app.scheduler.tick import Tick

        now, flags = probe()
        executors = {self.executor.name: self.executor}
        changed = self.loop.tick(Tick(now, self.job_id, conf(), executors, self.rng, conf().max_tis_per_query), flags)
        return bool(self.executor.drain(now, per_tick) or changed)

    def beat(self) -> None:
        """What the thread of the real process does: renews the lease."""
        from scheduler_app.models import Job, db

        Job.objects.filter(pk=self.job_id).update(latest_heartbeat=db.clock())


@dataclass(frozen=True)
class Played:
    seconds: float
    #: of this process, and of its database process (0 where that runs elsewhere)
    cpu: float
    db_cpu: float
    ticks: int


def make_dag(name: str) -> Any:
    from tests import shapes

    limits = {"max_active_runs": UNLIMITED, "max_active_tasks": UNLIMITED}
    makers: dict[str, Callable[[], Any]] = {
        "chain_100x10": lambda: shapes.chain(10, name, **limits),
        "single_1000x1": lambda: shapes.shape("only", name, **limits),
        "wide_20x102": lambda: shapes.wide(100, name, **limits),
        "parallel_1x1000": lambda: shapes.parallel(1000, name, **limits),
    }
    return makers[name]()


def create(shape: str) -> Any:
    """The DAG of a shape with its runs, all queued."""
    from scheduler_app.models import db
    from tests import rows

    dag = rows.store(make_dag(shape))
    rows.trigger(dag, SHAPES[shape].runs, now=db.clock(), prefix=f"{time.monotonic_ns()}_")
    db.execute("ANALYZE scheduler_task_instance")
    return dag


def play(stage: Stage, shape: str, per_tick: int = UNLIMITED) -> Played:
    """One measurement: seconds from the first pass until every run has succeeded; then its rows are deleted."""
    from scheduler_app.models import DagRun

    dag, server = create(shape), Server()
    stage.beat()
    db_cpu, cpu, began, beaten, ticks = server.seconds(), time.process_time(), time.perf_counter(), time.monotonic(), 1
    while stage.tick(per_tick):
        ticks += 1
        if time.monotonic() - beaten > 5:
            stage.beat()
            beaten = time.monotonic()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    spent = 0.0 if db_cpu is None else (server.seconds() or 0.0) - db_cpu
    left = DagRun.objects.filter(dag=dag).exclude(state="success").count()
    if left:
        raise SystemExit(f"{shape}: {left} runs did not succeed")
    DagRun.objects.filter(dag=dag).delete()
    return Played(seconds, cpu, spent, ticks)
