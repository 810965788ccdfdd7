"""A database with a history: 10⁵ task instances, few of them hot. Built once, in a transaction, and rolled back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import transaction

from scheduler_app.models import db as models_db
from scheduler_app.models import prepared
from tests.rows import T0

#: DAGs; the first HOT of them have everything that is not finished.
DAGS, HOT = 1000, 20
#: Runs: finished ones of all DAGs, running ones of the hot DAGs.
FINISHED_RUNS, RUNNING_PER_DAG, QUEUED_PER_DAG = 19_000, 10, 30
#: Of each running run: scheduled (refused by a limit), waiting (state none), queued, running, deferred.
SCHEDULED, WAITING, QUEUED, RUNNING, DEFERRED = 200, 40, 2, 2, 1
FINISHED_TASKS = 50_000

_DAGS = """
INSERT INTO scheduler_dag (dag_id, dag_display_name, bundle_name, fileloc, relative_fileloc, owners, timezone,
    timetable, timetable_periodic, schedule_hash, catchup, is_paused, is_stale, has_import_errors,
    has_task_concurrency_limits, max_active_tasks, max_active_runs, max_consecutive_failed_dag_runs, missed_scans,
    schedule_failures, created_at, next_dagrun_run_after)
SELECT 'dag' || lpad(n::text, 5, '0'), '', 'dags', '', '', '', 'UTC', '{}', false, '', false, false, false, false,
    false, 16, 16, 0, 0, 0, %(now)s, %(now)s + CASE WHEN n %% 50 = 0 THEN -1 ELSE n END * interval '1 minute'
FROM generate_series(0, %(dags)s - 1) n
"""
_RUNS = """
INSERT INTO scheduler_dag_run (dag_id, run_id, run_type, state, moved_by, run_after, logical_date, start_date, end_date,
    conf, triggered_by, clear_number, interval_pending, look_failures, next_check_at)
SELECT 'dag' || lpad((n %% %(dags)s)::text, 5, '0'), %(state)s || n, 'scheduled', %(state)s, 'create',
    %(now)s - n * interval '1 minute', %(now)s - n * interval '1 minute',
    CASE WHEN %(state)s <> 'queued' THEN %(now)s END, CASE WHEN %(state)s = 'success' THEN %(now)s END,
    '{}', 'timetable', 0, false, 0, CASE WHEN %(state)s = 'running' THEN %(now)s + n * interval '1 minute' END
FROM generate_series(0, %(count)s - 1) n
"""
_TASKS = """
INSERT INTO scheduler_task_instance (dag_run_id, dag_id, task_id, map_index, state, moved_by, try_number, max_tries,
    pool, pool_slots, queue, priority_weight, operator_name, hostname, unixname, fence, lost_hand_outs, scheduled_when,
    queued_when, start_date, end_date, heartbeat_at, handed_out_at, queued_by_job_id, trigger_timeout)
SELECT r.id, r.dag_id, %(state)s || n, -1, nullif(%(state)s, 'none'), 'create', 1, 1, %(pool)s, 1, 'default', n %% 7,
    '', '', '', 1, 0, %(now)s - n * interval '1 second', %(now)s, %(now)s,
    CASE WHEN %(state)s = 'success' THEN %(now)s END, %(now)s - (n * 40) * interval '1 second',
    CASE WHEN n %% 2 = 0 THEN %(now)s END, 1,
    CASE WHEN %(state)s = 'deferred' THEN %(now)s + (r.id %% 100 - 5) * interval '1 minute' END
FROM (SELECT id, dag_id FROM scheduler_dag_run WHERE state = %(run_state)s ORDER BY id LIMIT %(runs)s) r
CROSS JOIN generate_series(0, %(each)s - 1) n
"""
_WAKES = """
INSERT INTO scheduler_wake (dag_run_id, task_id, reason, created_at)
SELECT id, 'none' || n, 'task_ended', %(now)s
FROM scheduler_dag_run CROSS JOIN generate_series(0, 9) n WHERE state = 'running'
"""


def build() -> None:
    """All rows, and no others: neither how they lie nor what is known of them depends on what the database held before.

    Foreign keys are not checked on the way: each test's end would check them again.
    """
    models_db.execute("TRUNCATE scheduler_dag, scheduler_dag_run, scheduler_task_instance, scheduler_wake CASCADE")
    running = HOT * RUNNING_PER_DAG
    models_db.execute("SET LOCAL session_replication_role = replica")
    models_db.execute(_DAGS, {"now": T0, "dags": DAGS})
    for state, dags, count in (
        ("success", DAGS, FINISHED_RUNS),
        ("running", HOT, running),
        ("queued", HOT, HOT * QUEUED_PER_DAG),
    ):
        models_db.execute(_RUNS, {"now": T0, "dags": dags, "state": state, "count": count})
    for state, pool, run_state, runs, each in (
        ("success", "default_pool", "success", FINISHED_RUNS, FINISHED_TASKS // FINISHED_RUNS + 1),
        ("scheduled", "default_pool", "running", running, SCHEDULED),
        ("none", "default_pool", "running", running, WAITING),
        ("queued", "default_pool", "running", running, QUEUED),
        ("running", "default_pool", "running", running, RUNNING),
        ("deferred", "default_pool", "running", running, DEFERRED),
    ):
        params = {"now": T0, "state": state, "pool": pool, "run_state": run_state, "runs": runs, "each": each}
        models_db.execute(_TASKS, params)
    models_db.execute(_WAKES, {"now": T0})
    models_db.execute("SET LOCAL session_replication_role = origin")
    for table in ("dag", "dag_run", "task_instance", "wake", "pool"):
        models_db.execute(f"ANALYZE scheduler_{table}")


@pytest.fixture(scope="module")
def history(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), transaction.atomic():
        build()
        yield
        transaction.set_rollback(True)


@dataclass(frozen=True)
class Plan:
    buffers: int
    rows: int
    text: str


@pytest.fixture
def plan(history: None, db: None) -> Any:
    """``plan(sql, params)``: runs the statement and says how many pages it touched. What it changed is rolled back."""

    def explain(sql: str, params: dict[str, Any] | None = None) -> Plan:
        return _explain(sql, params or {})

    return explain


@pytest.fixture
def kept_plan(history: None, db: None) -> Any:
    """As ``plan``, by the plan that is kept for a few rows: it was made without knowing the parameters."""

    def explain(sql: str, params: dict[str, Any] | None = None) -> Plan:
        form = prepared._form(sql)
        models_db.execute(f"PREPARE kept AS {form.text}")
        with transaction.atomic():
            models_db.execute(f"{prepared._GENERIC}; {prepared._BY_KEY}")
            models_db.fetch(f"EXPLAIN EXECUTE kept{form.blanks}")
            models_db.execute(prepared._AS_BEFORE)
        try:
            return _explain(f"EXECUTE kept{form.arguments}", params or {}, "force_generic_plan")
        finally:
            models_db.execute("DEALLOCATE kept")

    return explain


def _explain(sql: str, params: dict[str, Any], mode: str = "auto") -> Plan:
    with transaction.atomic():
        models_db.execute(f"SET LOCAL plan_cache_mode = {mode}")
        (found,) = models_db.fetch(f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {sql}", params)
        transaction.set_rollback(True)
    tree = json.loads(found[0]) if isinstance(found[0], str) else found[0]
    top = tree[0]["Plan"]
    pages = top.get("Shared Hit Blocks", 0) + top.get("Shared Read Blocks", 0)
    return Plan(pages, top["Actual Rows"], _scans(top))


def _scans(node: dict[str, Any]) -> str:
    own = f"{node['Node Type']} {node.get('Index Name') or node.get('Relation Name') or ''}".strip()
    return "; ".join([own, *(_scans(child) for child in node.get("Plans", ()))])
