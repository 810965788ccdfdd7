"""What a pass costs beside rows that should not matter: history, idle DAGs, tasks that wait or are refused.

For each kind and size the same little work is played, 50 runs of three tasks in a row, and idle passes. The CPU of loop
and database together is compared with that of the smallest size; the rows of a size are added to those before.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.database import Server
from bench.play import UNLIMITED, Stage
from bench.reads_seed import insert_select

RUNS, TASKS = 50, 3
IDLE_PASSES = 20
STEPS = {
    "history": (10_000, 1_000_000, 10_000_000),
    "idle_dags": (100, 10_000, 100_000),
    "waiting": (100, 10_000, 100_000),
    "refused": (100, 10_000, 100_000),
}
LARGE = 5_000_000

#: Task instances of a run among those rows.
EACH = 100


def main(stage: Stage, repeat: int, *, large: bool) -> None:
    """A JSON line for each kind and size, with the factor over the smallest; then one for a held snapshot."""
    for kind, sizes in STEPS.items():
        base = None
        done = 0
        for size in sizes:
            if size > LARGE and not large:
                continue
            _fill(kind, done, size)
            done = size
            found = _measure(stage, repeat)
            base = base or found
            factors = {f"{key}_factor": round(found[key] / base[key], 2) for key in found if base[key]}
            print(json.dumps({"beside": kind, "rows": size, **found, **factors}), flush=True)
        _empty()
    print(json.dumps({"beside": "a held snapshot", **_with_snapshot(stage, repeat)}), flush=True)


def _measure(stage: Stage, repeat: int) -> dict[str, float]:
    """Medians: CPU and wall of a task instance, and of an idle pass, in ms."""
    _work(stage)
    plays = [_work(stage) for _ in range(repeat)]
    server = Server()
    cpu, began = time.process_time() + (server.seconds() or 0.0), time.perf_counter()
    for _ in range(IDLE_PASSES):
        stage.tick(0)
    idle, idle_cpu = time.perf_counter() - began, time.process_time() + (server.seconds() or 0.0) - cpu
    return {
        "cpu_ms_per_ti": round(statistics.median(cpu for cpu, _ in plays) / (RUNS * TASKS) * 1000, 3),
        "ms_per_ti": round(statistics.median(wall for _, wall in plays) / (RUNS * TASKS) * 1000, 3),
        "idle_pass_ms": round(idle / IDLE_PASSES * 1000, 3),
        "idle_pass_cpu_ms": round(idle_cpu / IDLE_PASSES * 1000, 3),
    }


def _work(stage: Stage) -> tuple[float, float]:
    """CPU (loop and database) and wall of the same little work: seconds."""
    from scheduler_app.models import DagRun, db
    from tests import rows, shapes

    dag = rows.store(shapes.chain(TASKS, "work", max_active_runs=UNLIMITED, max_active_tasks=UNLIMITED))
    rows.trigger(dag, RUNS, now=db.clock(), prefix=f"{time.monotonic_ns()}_")
    stage.beat()
    server = Server()
    cpu, began = time.process_time() + (server.seconds() or 0.0), time.perf_counter()
    while stage.tick(UNLIMITED):
        pass
    found = time.process_time() + (server.seconds() or 0.0) - cpu, time.perf_counter() - began
    if DagRun.objects.filter(dag=dag).exclude(state="success").exists():
        raise SystemExit("The work beside the other rows did not end")
    DagRun.objects.filter(dag=dag).delete()
    return found


def _fill(kind: str, have: int, wanted: int) -> None:
    """Adds rows of a kind until there are so many."""
    from scheduler_app.models import Pool, db

    fillers: dict[str, Callable[[], None]] = {
        "history": lambda: _add_tasks("history", "success", "success", have, wanted),
        "idle_dags": lambda: _add_dags("'idle' || n", "1 hour", have + 1, wanted),
        "waiting": lambda: _add_tasks("waiting", "running", "none", have, wanted),
        "refused": lambda: _add_tasks("refused", "running", "scheduled", have, wanted, pool="full"),
    }
    Pool.objects.get_or_create(pool="full", defaults={"slots": 0})
    fillers[kind]()
    db.execute("VACUUM ANALYZE scheduler_task_instance, scheduler_dag_run, scheduler_dag")


def _add_dags(name: str, every: str, first: int, last: int) -> None:
    from scheduler_app.models import DagModel

    insert_select(
        DagModel,
        "generate_series(%s, %s) n",
        (first, last),
        dag_id=name,
        bundle_name="'dags'",
        timezone="'UTC'",
        is_paused="false",
        max_active_tasks=f"{UNLIMITED}",
        max_active_runs=f"{UNLIMITED}",
        created_at="now()",
        next_dagrun_run_after=f"now() + n * interval '{every}'",
    )


def _add_tasks(dag: str, state: str, task_state: str, have: int, wanted: int, pool: str = "default_pool") -> None:
    from scheduler_app.models import DagModel, DagRun, TaskInstance, db

    if not DagModel.objects.filter(pk=dag).exists():
        _add_dags(f"'{dag}'", "1000 hours", 1, 1)
    slot, ended = "now() - n * interval '1 minute'", state == "success"
    db.execute("SET session_replication_role = replica")
    insert_select(
        DagRun,
        "generate_series(%s, %s) n",
        (have // EACH + 1, wanted // EACH),
        dag_id=f"'{dag}'",
        run_id=f"'{state}' || n",
        run_type="'scheduled'",
        state=f"'{state}'",
        moved_by="'create'",
        run_after=slot,
        logical_date=slot,
        start_date=slot,
        end_date=slot if ended else "NULL",
        triggered_by="'timetable'",
        next_check_at="now() + interval '1 day'",
    )
    insert_select(
        TaskInstance,
        "scheduler_dag_run r CROSS JOIN generate_series(0, %s - 1) n WHERE r.dag_id = %s"
        " AND NOT EXISTS (SELECT 1 FROM scheduler_task_instance t WHERE t.dag_run_id = r.id)",
        (EACH, dag),
        dag_run_id="r.id",
        dag_id="r.dag_id",
        task_id="'t' || n",
        state=f"nullif('{task_state}', 'none')",
        moved_by="'create'",
        try_number="1",
        max_tries="1",
        pool=f"'{pool}'",
        priority_weight="1",
        fence="1",
        scheduled_when="r.start_date",
        queued_when="r.start_date",
        start_date="r.start_date",
        end_date="r.end_date" if task_state == "success" else "NULL",
    )
    db.execute("SET session_replication_role = origin")


def _empty() -> None:
    from scheduler_app.models import db

    tables = (
        "scheduler_task_instance, scheduler_task_instance_history, scheduler_dag_run, scheduler_dag, scheduler_wake"
    )
    db.execute(f"TRUNCATE {tables} CASCADE")


def _with_snapshot(stage: Stage, repeat: int) -> dict[str, float]:
    """What each 1,000 ended task instances cost the passes after them while somebody holds a snapshot: ms."""
    with _held_snapshot():
        _work(stage)
        walls = [_work(stage)[1] for _ in range(max(repeat, 20))]
    few = max(1, len(walls) // 4)
    ended = RUNS * TASKS * (len(walls) - few)
    passes = TASKS + 2
    slower = (statistics.median(walls[-few:]) - statistics.median(walls[:few])) / passes * 1000
    return {"ended_meanwhile": ended, "ms_of_a_pass_for_each_1000": round(slower / ended * 1000, 3)}


@contextmanager
def _held_snapshot() -> Iterator[None]:
    import psycopg2

    from scheduler_app.models import db

    params = db.connection().get_connection_params()
    params.pop("cursor_factory", None)
    other = psycopg2.connect(**params)
    try:
        other.set_session(isolation_level="REPEATABLE READ")
        with other.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM scheduler_task_instance")
        yield
    finally:
        other.close()
