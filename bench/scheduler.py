"""How fast the scheduler is when execution costs nothing: ``python -m bench.scheduler [--shape NAME] [--repeat N]``.

From created run to success, through the real phases and the runner's own claim and outcome statements. One JSON line a
shape (docs/performance.md explains the figures). It uses a throw-away database on DATABASE_URL, else an embedded one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from bench.database import Server, reexec_with_embedded, throwaway
from bench.statements import table, watch

#: shape → (runs, tasks a run, the DAG)
SHAPES: dict[str, tuple[int, int]] = {
    "chain_100x10": (100, 10),
    "single_1000x1": (1000, 1),
    "wide_20x102": (20, 102),
    "parallel_1x1000": (1, 1000),
}
UNLIMITED = 1_000_000


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


def run_shape(name: str, loop: Any, executor: Any, job_id: int, per_tick: int) -> dict[str, Any]:
    """One measurement: seconds from the first tick until every run has succeeded."""
    from scheduler_app.conf import conf
    from scheduler_app.models import DagRun, Job, db
    from scheduler_app.scheduler.tick import Tick
    from tests import rows

    runs, tasks = SHAPES[name]
    dag = rows.store(make_dag(name))
    rows.trigger(dag, runs, now=db.clock(), prefix=f"{time.monotonic_ns()}_")
    db.execute("ANALYZE scheduler_task_instance")
    rng, server = random.Random(1), Server()
    db_cpu, cpu, began, ticks, beat = server.seconds(), _cpu(), time.perf_counter(), 0, time.monotonic()
    while True:
        now = db.clock()
        tick = Tick(now, job_id, conf(), {executor.name: executor}, rng, conf().max_tis_per_query)
        if time.monotonic() - beat > conf().heartbeat_seconds:  # its lease is renewed by a thread in the real process
            beat = time.monotonic()
            Job.objects.filter(pk=job_id).update(latest_heartbeat=tick.now)
        changed = loop.tick(tick)
        ticks += 1
        if not executor.drain(now, per_tick) and not changed:
            break
    seconds, db_cpu = time.perf_counter() - began, server.seconds() - db_cpu
    open_runs = DagRun.objects.filter(dag=dag).exclude(state="success").count()
    if open_runs:
        raise SystemExit(f"{name}: {open_runs} runs did not succeed")
    total = runs * tasks
    DagRun.objects.filter(dag=dag).delete()
    return {
        "shape": name,
        "tis_per_s": round(total / seconds),
        "seconds": round(seconds, 3),
        "cpu_ms_per_ti": round((_cpu() - cpu) / total * 1000, 4),
        "db_cpu_ms_per_ti": round(db_cpu / total * 1000, 4),
        "ticks": ticks,
    }


def _cpu() -> float:
    use = resource.getrusage(resource.RUSAGE_SELF)
    return use.ru_utime + use.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=sorted(SHAPES), action="append", help="only this shape (may be repeated)")
    parser.add_argument("--repeat", type=int, default=5, help="measurements a shape; the median is printed")
    parser.add_argument("--per-tick", type=int, default=UNLIMITED, help="attempts that end between two ticks")
    parser.add_argument("--statements", action="store_true", help="print where the database's time goes as well")
    args = parser.parse_args()
    reexec_with_embedded("bench.scheduler")
    with throwaway("scheduler"):
        from bench.free_executor import FreeExecutor
        from scheduler_app.models import Job, Pool, db
        from scheduler_app.scheduler.loop import Loop

        logging.getLogger("scheduler_app").setLevel(logging.WARNING)
        Pool.objects.filter(pool="default_pool").update(slots=-1)
        now = db.clock()
        job = Job.objects.create(job_type="SchedulerJob", start_date=now, latest_heartbeat=now)
        for name in args.shape or SHAPES:
            executor, loop = FreeExecutor(), Loop()
            executor.start(job.pk)
            with watch() if args.statements else contextlib.nullcontext({}) as seen:
                results = [run_shape(name, loop, executor, job.pk, args.per_tick) for _ in range(args.repeat)]
            median = statistics.median(result["tis_per_s"] for result in results)
            best = min(results, key=lambda result: abs(result["tis_per_s"] - median))
            rates = [result["tis_per_s"] for result in results]
            print(json.dumps({**best, "min": min(rates), "max": max(rates)}), flush=True)
            if seen:
                print(table(seen), file=sys.stderr)


if __name__ == "__main__":
    main()
