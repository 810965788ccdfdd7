"""Several schedulers on one database: real processes that start together and share the same runs."""

from __future__ import annotations

import json
import multiprocessing
import statistics
import time
from typing import Any

from bench.play import Stage, create

SHAPE = "chain_100x10"
#: Runs: as many times those of the shape, so that the processes have something to share for long enough.
TIMES = 5


def main(stage: Stage, count: int, repeat: int) -> None:
    """One JSON line: task instances a second of one process and of ``count``, interleaved, medians."""
    from scheduler_app.models import db

    db.close()  # a fork must not share the connection
    alone, together = [], []
    for _ in range(repeat):
        alone.append(_race(1))
        together.append(_race(count))
    one, many = statistics.median(alone), statistics.median(together)
    line = {"shape": SHAPE, "schedulers": count, "tis_per_s_of_one": round(one), "tis_per_s": round(many)}
    print(json.dumps({**line, "gain": round(many / one, 2)}), flush=True)


def _race(count: int) -> float:
    """Task instances a second until every run has succeeded, with so many processes."""
    from scheduler_app.models import DagRun, TaskInstance, db

    dags = [create(SHAPE) for _ in range(TIMES)]
    runs = DagRun.objects.filter(dag__in=dags)
    total = TaskInstance.objects.filter(dag_run__in=runs).count()
    db.close()
    context = multiprocessing.get_context("fork")
    barrier, ready = context.Barrier(count + 1), context.Event()
    workers = [context.Process(target=_work, args=(barrier, ready), daemon=True) for _ in range(count)]
    for worker in workers:
        worker.start()
    barrier.wait(60)
    began = time.perf_counter()
    while runs.exclude(state="success").exists():
        time.sleep(0.01)
    seconds = time.perf_counter() - began
    ready.set()
    for worker in workers:
        worker.join(60)
    runs.delete()
    db.close()
    return total / seconds


def _work(barrier: Any, over: Any) -> None:
    """One scheduler: passes until the race is over; a short rest when there is nothing for it."""
    stage = Stage.set()
    stage.tick(0)  # whatever is done once a process is done before the start
    barrier.wait(60)
    while not over.is_set():
        if not stage.tick(1_000_000):
            time.sleep(0.002)
