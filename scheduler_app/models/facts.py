"""Rows → the plain values that ``engine`` takes. The loop and "why is this not running" read through here alike."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from scheduler_app.engine.graph import Graph
from scheduler_app.engine.readiness import PastFact, Previous, Ti

from . import db, prepared


class RunRow(NamedTuple):
    """A run as the loop reads it, with what its DAG says at this moment."""

    id: int
    dag_id: str
    run_id: str
    run_type: str
    state: str
    logical_date: datetime | None
    run_after: datetime
    start_date: datetime | None
    version_id: UUID | None
    next_check_at: datetime | None
    look_failures: int
    backoff_until: datetime | None
    held_at: datetime | None
    held_until: datetime | None
    cut_short_at: datetime | None
    is_paused: bool
    is_stale: bool
    latest_version_id: UUID | None
    max_active_tasks: int

    def held(self, now: datetime) -> bool:
        return self.held_at is not None and (self.held_until is None or self.held_until > now)


RUN_ROW = """
r.id, r.dag_id, r.run_id, r.run_type, r.state, r.logical_date, r.run_after, r.start_date, r.dag_version_id,
r.next_check_at, r.look_failures, r.backoff_until, r.held_at, r.held_until, r.cut_short_at,
d.is_paused, d.is_stale, d.latest_version_id, d.max_active_tasks
"""

_TI = (
    "ti.dag_run_id, ti.id, ti.task_id, ti.map_index, ti.state, ti.try_number, ti.max_tries, ti.next_at, ti.map_length,"
    " ti.held_at IS NOT NULL AND (ti.held_until IS NULL OR ti.held_until > %(now)s), ti.skips, ti.held_until"
)
_TASKS_OF_RUNS = (
    "(SELECT * FROM unnest(%(task_runs)s::bigint[], %(tasks)s::text[])"
    f" {prepared.all_of('%(tasks)s::text[]')}) AS w(run, task)"
)
_ALL_OF_RUNS = (
    f"SELECT {_TI} FROM (SELECT * FROM unnest(%(runs)s::bigint[]) {prepared.all_of('%(runs)s::bigint[]')}) AS w(run)"
    " JOIN scheduler_task_instance ti ON ti.dag_run_id = w.run"
)
_SOME_TASKS = (
    f"SELECT {_TI} FROM {_TASKS_OF_RUNS}"
    " JOIN scheduler_task_instance ti ON ti.dag_run_id = w.run AND ti.task_id = w.task"
)


class TaskFacts(NamedTuple):
    """The task instances of some runs, and when the first hold among them ends by itself."""

    tis: dict[int, list[Ti]]
    held_until: dict[int, datetime]


def task_facts(whole: Sequence[int], parts: Mapping[int, Collection[str]], now: datetime) -> TaskFacts:
    """All task instances of the runs ``whole``, and those of the named tasks of the runs ``parts``; one statement."""
    tis: dict[int, list[Ti]] = defaultdict(list)
    held_until: dict[int, datetime] = {}
    params: dict[str, Any] = {"now": now}
    statements = []
    if whole:
        statements.append(_ALL_OF_RUNS)
        params["runs"] = list(whole)
    if parts:
        statements.append(_SOME_TASKS)
        pairs = [(run, task) for run, tasks in parts.items() for task in tasks]
        params["task_runs"] = [run for run, _ in pairs]
        params["tasks"] = [task for _, task in pairs]
    if not statements:
        return TaskFacts(tis, held_until)
    make = Ti._make
    for row in db.fetch(" UNION ALL ".join(statements), params, keep_plan=True):
        skips = row[10]
        tis[row[0]].append(make(row[1:11]) if skips is None else make((*row[1:10], json.loads(skips))))
        if row[11] is not None and row[11] > now:
            held_until[row[0]] = min(row[11], held_until.get(row[0], row[11]))
    return TaskFacts(tis, held_until)


_LEAVES = f"""
SELECT ti.dag_run_id, ti.task_id, ti.state FROM {_TASKS_OF_RUNS}
JOIN scheduler_task_instance ti ON ti.dag_run_id = w.run AND ti.task_id = w.task
"""


def leaf_states(leaves: Mapping[int, Sequence[str]]) -> dict[int, list[tuple[str, str | None]]]:
    """Run → (task id, state) of every instance of its leaves."""
    pairs = [(run, task) for run, tasks in leaves.items() for task in tasks]
    found: dict[int, list[tuple[str, str | None]]] = defaultdict(list)
    if pairs:
        params = {"task_runs": [run for run, _ in pairs], "tasks": [task for _, task in pairs]}
        for run, task, state in db.fetch(_LEAVES, params, keep_plan=True):
            found[run].append((task, state))
    return found


#: The run before the run ``r`` of the DAG ``d``: with catch-up the previous scheduled one, else the previous of any
#: type (Airflow 3.3).
PREVIOUS_RUN = """
    SELECT * FROM scheduler_dag_run
    WHERE dag_id = r.dag_id AND logical_date < r.logical_date AND (NOT d.catchup OR run_type = 'scheduled')
    ORDER BY logical_date DESC, id DESC LIMIT 1
"""
_PREVIOUS = f"""
SELECT w.id, p.id, p.run_id, p.logical_date, d.catchup
FROM unnest(%(runs)s::bigint[]) AS w(id)
JOIN scheduler_dag_run r ON r.id = w.id
JOIN scheduler_dag d ON d.dag_id = r.dag_id
CROSS JOIN LATERAL ({PREVIOUS_RUN}) p
"""
_PAST_TASKS = """
SELECT ti.dag_run_id, ti.task_id, ti.state FROM scheduler_task_instance ti
WHERE ti.dag_run_id = ANY(%(runs)s) AND ti.task_id = ANY(%(tasks)s)
"""
_EVER = """
SELECT w.run, w.task FROM unnest(%(runs)s::bigint[], %(tasks)s::text[]) AS w(run, task)
JOIN scheduler_dag_run r ON r.id = w.run
WHERE EXISTS (SELECT 1 FROM scheduler_dag_run p JOIN scheduler_task_instance ti ON ti.dag_run_id = p.id
              WHERE p.dag_id = r.dag_id AND p.logical_date < r.logical_date AND ti.task_id = w.task)
"""


def previous_facts(
    rows: Sequence[RunRow], compiled: Mapping[UUID, Graph], versions: Mapping[int, UUID | None]
) -> dict[int, Previous]:
    """What tasks that depend on their past ask of the run before; runs without one are left out."""
    if not rows:
        return {}
    before = {row[0]: row[1:] for row in db.fetch(_PREVIOUS, {"runs": [row.id for row in rows]})}
    asking: dict[int, dict[str, tuple[str, ...]]] = {}
    for row in rows:
        version = versions[row.id]
        if row.id in before and version is not None:
            graph = compiled[version]
            asking[row.id] = {
                task_id: graph.downstream[task_id] if task.wait_for_downstream else ()
                for task_id, task in graph.tasks.items()
                if task.depends_on_past or task.wait_for_downstream
            }
    wanted = {name for tasks in asking.values() for task, after in tasks.items() for name in (task, *after)}
    seen: dict[tuple[int, str], list[str | None]] = defaultdict(list)
    if wanted:
        keys = list({before[run][0] for run in asking})
        for run, task, state in db.fetch(_PAST_TASKS, {"runs": keys, "tasks": sorted(wanted)}):
            seen[run, task].append(state)
    absent = [(run, task) for run, tasks in asking.items() for task in tasks if (before[run][0], task) not in seen]
    ever = (
        set(db.fetch(_EVER, {"runs": [run for run, _ in absent], "tasks": [task for _, task in absent]}))
        if absent
        else set()
    )
    found = {}
    for run, tasks in asking.items():
        key, run_id, logical_date, catchup = before[run]
        found[run] = Previous(
            run_id,
            logical_date,
            {
                task: PastFact(
                    tuple(seen.get((key, task), ())),
                    tuple(state for name in after for state in seen.get((key, name), ())),
                    (key, task) in seen or (run, task) in ever,
                )
                for task, after in tasks.items()
            },
            catchup,
        )
    return found


_WAKE_FOLLOWING = """
INSERT INTO scheduler_wake (dag_run_id, task_id, reason, created_at)
SELECT DISTINCT n.id, NULL::text, %(reason)s, %(now)s
FROM unnest(%(dags)s::text[], %(dates)s::timestamptz[]) AS w(dag_id, logical_date)
CROSS JOIN LATERAL (
    SELECT id FROM scheduler_dag_run r
    WHERE r.dag_id = w.dag_id AND r.state = 'running' AND r.logical_date > w.logical_date
    ORDER BY r.logical_date LIMIT 1
) n
"""


def wake_following(rows: Sequence[RunRow], reason: str, now: datetime) -> int:
    """Makes the next running run (by logical date) after each of these due for a look."""
    if not rows:
        return 0
    return db.execute(
        _WAKE_FOLLOWING,
        {
            "reason": reason,
            "now": now,
            "dags": [row.dag_id for row in rows],
            "dates": [row.logical_date for row in rows],
        },
    )
