"""Looks at the runs that a wake made due: which tasks are ready, skipped or failed by their upstreams, which runs end
(F-18, F-22, F-23).

The runs are locked, their wakes deleted, and only *then* are the task instances read, in a later statement: a wake that
commits meanwhile stays for the next look, so no change is missed (design decision 6). A look loads only what a change
can reach, or the whole run when that is a third of it. ``engine`` alone decides; the moves of all runs are written
together, one statement for each verb.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from scheduler_app import metrics
from scheduler_app.engine import states
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.outcome import Outcome, deadlock, fail_fast_moves, outcome
from scheduler_app.engine.readiness import Look, Move, RunFact, Ti, look
from scheduler_app.models import Wake, creation, db, facts, following, graphs, transitions
from scheduler_app.models.facts import RunRow
from scheduler_app.models.prepared import all_of
from scheduler_app.scheduler import cut_short, deferring, past_runs, run_ends
from scheduler_app.scheduler.tick import Tick, backoff, error_text

#: Wakes that one look for due runs reads.
WAKE_WINDOW = 4096
#: A graph of at most so many tasks is always loaded whole.
SMALL_GRAPH = 12

#: Those that have waited longest come first, so that runs that are always due keep no other from its look. Each run is
#: found by its key (a join was hashed with all history), and so is its DAG (one was merged with 20,000 idle ones).
_TAKE_RUNS = f"""
WITH taken AS MATERIALIZED (
    SELECT w.first, r.* FROM (
        SELECT dag_run_id, min(id) AS first FROM (
            SELECT id, dag_run_id FROM scheduler_wake WHERE id > %(after)s ORDER BY id LIMIT %(window)s
        ) w GROUP BY dag_run_id ORDER BY first
    ) w CROSS JOIN LATERAL (
        SELECT {facts.RUN_ROW} FROM scheduler_dag_run r
        CROSS JOIN LATERAL (SELECT * FROM scheduler_dag WHERE dag_id = r.dag_id OFFSET 0) d
        WHERE r.id = w.dag_run_id FOR NO KEY UPDATE OF r SKIP LOCKED
    ) r LIMIT %(limit)s
), wakes AS (
    DELETE FROM scheduler_wake k USING taken WHERE k.dag_run_id = taken.id
    RETURNING k.dag_run_id AS run, k.task_id, k.reason
)
SELECT w.tasks, w.reasons, taken.* FROM taken LEFT JOIN (
    SELECT run, array_agg(task_id) AS tasks, array_agg(reason) AS reasons FROM wakes GROUP BY run
) w ON w.run = taken.id ORDER BY taken.first
"""
_END_OF_WINDOW = """
SELECT max(id) FROM (SELECT id FROM scheduler_wake WHERE id > %(after)s ORDER BY id LIMIT %(window)s) w
"""
#: Wakes of runs that were deleted: nobody will ever take them.
_DROP_ORPHANS = """
DELETE FROM scheduler_wake WHERE id IN (
    SELECT w.id FROM (SELECT id, dag_run_id FROM scheduler_wake ORDER BY id LIMIT %(window)s) w
    WHERE NOT EXISTS (SELECT 1 FROM scheduler_dag_run r WHERE r.id = w.dag_run_id)
)
"""
_SET_ALARMS = """
UPDATE scheduler_dag_run r SET next_check_at = w.at, last_scheduling_decision = %(now)s
FROM unnest(%(runs)s::bigint[], %(ats)s::timestamptz[]) AS w(id, at) WHERE r.id = w.id
"""
#: Of these runs, what is open: anything at all, and anything that will end by itself.
_OPEN = f"""
SELECT w.id,
       EXISTS (SELECT 1 FROM scheduler_task_instance ti WHERE ti.dag_run_id = w.id
               AND (ti.state IS NULL OR ti.state IN ('scheduled', 'queued', 'running', 'restarting', 'deferred',
                                                     'up_for_retry', 'up_for_reschedule'))),
       EXISTS (SELECT 1 FROM scheduler_task_instance ti WHERE ti.dag_run_id = w.id
               AND ti.state IN ('scheduled', 'queued', 'running', 'restarting', 'deferred',
                                'up_for_retry', 'up_for_reschedule'))
FROM (SELECT * FROM unnest(%(runs)s::bigint[]) {all_of("%(runs)s::bigint[]")}) AS w(id)
"""
_DAGS_WITH_WAKES = """
SELECT DISTINCT r.dag_id FROM scheduler_wake w JOIN scheduler_dag_run r ON r.id = w.dag_run_id
WHERE r.dag_id = ANY(%(dags)s)
"""
_BLAME = """
UPDATE scheduler_dag_run SET look_failures = look_failures + 1, look_error = %(error)s, backoff_until = %(until)s,
    next_check_at = %(until)s
WHERE id = %(run)s
"""
_FORGIVE = """
UPDATE scheduler_dag_run SET look_failures = 0, look_error = NULL, backoff_until = NULL
WHERE id = ANY(%(runs)s)
"""


@dataclass(slots=True)
class _Looked:
    """One run during the phase: what was loaded, what was found."""

    row: RunRow
    graph: Graph
    only: frozenset[str] | None
    woken: set[str | None]
    tis: list[Ti]
    found: Look
    ended: Outcome | None = None


def run(tick: Tick) -> int:
    taken = _take_runs(tick)
    if not taken:
        tick.again = True
        return db.execute(_DROP_ORPHANS, {"window": WAKE_WINDOW})
    rows = [one.row for one in taken]
    tick.working_on = [row.id for row in rows]
    woken = {one.row.id: one.tasks for one in taken}
    swept = {one.row.id for one in taken if "sweep" in one.reasons}
    ended_tasks = {one.row.id for one in taken if one.reasons - {"sweep", "past_moved"}}
    deleted = [one.row for one in taken if "task_deleted" in one.reasons and one.row.state not in states.RUN_FINISHED]
    following.make_anew((row.id, row.logical_date, row.version_id) for row in deleted)
    open_rows, alarms = _due(rows, tick.now)
    _keep_time_outs(rows, alarms)
    followed = following.follow_newest(open_rows, tick.now) if tick.conf.runs_follow_newest_version else {}
    looked, failed = _look_at(open_rows, woken, followed, tick, alarms)
    _apply(looked, tick)
    waiting = _end_runs(looked, tick)
    moved = [one.row for one in looked if one.graph.has_past_deps and (one.row.id in ended_tasks or one.found.moves)]
    past_runs.wake_next([*moved, *past_runs.changed_beside(rows, ended_tasks)], tick.now)
    _set_alarms(looked, alarms, tick)
    past_runs.give_way(waiting, tick.now)
    metrics.SWEPT.inc(_missed(looked, swept - ended_tasks))
    forgiven = [one.row.id for one in looked if one.row.look_failures]
    if forgiven:
        db.execute(_FORGIVE, {"runs": forgiven})
    for run_id, error in failed.items():
        blame(tick, run_id, error)
    return len(rows)


class _Taken(NamedTuple):
    """A run that is locked, and what its wakes said."""

    row: RunRow
    tasks: set[str | None]
    reasons: set[str]


def _take_runs(tick: Tick) -> list[_Taken]:
    """Locks the runs that have wakes; a window whose runs are all somebody else's hides nothing behind it."""
    after = 0
    while True:
        params = {"after": after, "window": WAKE_WINDOW, "limit": tick.limit}
        rows = db.fetch(_TAKE_RUNS, params, keep_plan=True)
        if rows:
            return [_Taken(RunRow._make(row), set(tasks or ()), set(why or ())) for tasks, why, _, *row in rows]
        end = db.fetch(_END_OF_WINDOW, params)[0][0]
        if end is None:
            return []
        after = end


def blame(tick: Tick, run_id: object, error: BaseException) -> None:
    """The run that cannot be looked at keeps the error and is left alone for a while; its wakes wait in the alarm."""
    failures = db.fetch("SELECT look_failures FROM scheduler_dag_run WHERE id = %s", [run_id])
    until = backoff(failures[0][0] if failures else 0, tick.now, tick.rng)
    db.execute(_BLAME, {"run": run_id, "error": error_text(error), "until": until})
    db.execute("DELETE FROM scheduler_wake WHERE dag_run_id = %s", [run_id])


def _due(rows: Sequence[RunRow], now: datetime) -> tuple[list[RunRow], dict[int, datetime | None]]:
    """The runs to look at, and the alarms of those that stand still for a known time.

    A run that is paused, not running or held without end is dropped: whatever changes that wakes the whole run again.
    """
    due: list[RunRow] = []
    alarms: dict[int, datetime | None] = {}
    for row in rows:
        if row.state != states.RUNNING or row.is_paused or row.is_stale:
            continue
        if row.held(now):
            if row.held_until is not None:
                alarms[row.id] = row.held_until
        elif row.backoff_until is not None and row.backoff_until > now:
            alarms[row.id] = row.backoff_until
        else:
            due.append(row)
    return due, alarms


def _keep_time_outs(rows: Sequence[RunRow], alarms: dict[int, datetime | None]) -> None:
    """A run that stands still (paused, held, backing off) times out all the same (F-19)."""
    due = alarms.keys()
    still = [row for row in rows if row.state == states.RUNNING and (row.is_paused or row.held_at or row.id in due)]
    if not still:
        return
    compiled, _ = graphs.readable(row.version_id for row in still if row.version_id is not None)
    for row in still:
        graph = compiled.get(row.version_id) if row.version_id is not None else None
        at = cut_short.due_at(row, graph) if graph is not None else None
        if at is not None:
            alarms[row.id] = min(at, alarms.get(row.id) or at)


def _look_at(
    rows: Sequence[RunRow],
    woken: dict[int, set[str | None]],
    followed: dict[int, UUID],
    tick: Tick,
    alarms: dict[int, datetime | None],
) -> tuple[list[_Looked], dict[int, Exception]]:
    """Loads what the wakes can reach and asks ``engine.look``; alarms are collected on the way.

    Each run is decided on by itself: one that raises is told apart, and the others go on (I5).
    """
    versions = {row.id: followed.get(row.id, row.version_id) for row in rows}
    compiled, unreadable = graphs.readable(version for version in versions.values() if version is not None)
    failed: dict[int, Exception] = {}
    graph_of: dict[int, Graph] = {}
    whole: list[int] = []
    parts: dict[int, frozenset[str]] = {}
    scope: dict[int, frozenset[str] | None] = {}
    for row in rows:
        try:
            graph_of[row.id] = _graph(row, versions[row.id], compiled, unreadable)
            scope[row.id], load = _reach(graph_of[row.id], woken[row.id], row.id in followed)
        except Exception as error:
            failed[row.id] = error
            continue
        if load is None:
            whole.append(row.id)
        else:
            parts[row.id] = load
    loaded = facts.task_facts(whole, parts, tick.now)
    asking = [row for row in rows if row.id not in failed and graph_of[row.id].has_past_deps]
    past = facts.previous_facts(asking, compiled, versions)
    looked = []
    for row in rows:
        if row.id in failed:
            continue
        tis = loaded.tis.get(row.id, [])
        fact = RunFact(logical_date=row.logical_date, allow_future=tick.conf.allow_future_logical_dates)
        try:
            found = look(graph_of[row.id], tis, run=fact, now=tick.now, only=scope[row.id], previous=past.get(row.id))
        except Exception as error:
            failed[row.id] = error
            continue
        looked.append(_Looked(row, graph_of[row.id], scope[row.id], woken[row.id], tis, found))
        alarms[row.id] = _alarm(looked[-1], loaded.held_until.get(row.id), tick.now)
    return looked, failed


def _graph(
    row: RunRow, version: UUID | None, compiled: Mapping[UUID, Graph], unreadable: Mapping[UUID, Exception]
) -> Graph:
    if version is not None and version in unreadable:
        raise unreadable[version]
    if version is None or version not in compiled:
        raise LookupError(
            f"The definition of DAG {row.dag_id} (version {version}) is not stored. The run goes on when its file "
            "is parsed again."
        )
    return compiled[version]


def _reach(
    graph: Graph, woken: Iterable[str | None], changed: bool
) -> tuple[frozenset[str] | None, frozenset[str] | None]:
    """What to look at and what to load; (None, None) = everything."""
    tasks = {task_id for task_id in woken if task_id is not None}
    if changed or None in woken or len(graph.tasks) <= SMALL_GRAPH:
        return None, None
    if graph.dag.fail_fast or not tasks <= graph.tasks.keys():
        return None, None
    near = graph.neighbourhood(tasks)
    return (None, None) if near.wide else (near.look_at, near.load)


def _alarm(one: _Looked, held_until: datetime | None, now: datetime) -> datetime | None:
    """When time alone makes the run due again. A partial look must not put off what the rest of the run waits for, nor
    an alarm that is due and has not been served yet."""
    instants = [at for at in (one.found.next_check_at, held_until) if at is not None]
    times_out = cut_short.due_at(one.row, one.graph)
    if times_out is not None:
        instants.append(max(now, times_out))
    if one.only is not None and one.row.next_check_at is not None:
        instants.append(one.row.next_check_at)
    return min(instants, default=None)


def _apply(looked: Sequence[_Looked], tick: Tick) -> None:
    """Writes the moves of all looks, one statement for each verb, then what is mapped."""
    by_verb: dict[str, list[Move]] = defaultdict(list)
    expansions: list[tuple[int, str, int]] = []
    again: list[tuple[int, str]] = []
    begins: list[deferring.Begin] = []
    for one in looked:
        ended = _fail_fast(one)  # first: it takes moves out of the look
        for move in (*one.found.moves, *ended):
            by_verb[move.verb].append(move)
        begins += _begins(one)
        for task_id, length in one.found.expand:
            expansions.append((one.row.id, task_id, length))
            again.append((one.row.id, task_id))
        again += [(one.row.id, task_id) for task_id in one.found.touched]
    by_verb.pop("start_deferred", None)
    deferring.start(begins, tick.now)
    for verb, moves in by_verb.items():
        moves.sort(key=lambda move: move.ti_id)
        if verb == "schedule" and tick.admission_writes(len(moves)):
            tick.ready = [move.ti_id for move in moves]
            tick.open_runs = {one.row.id: one.row.max_active_tasks for one in looked if one.found.moves}
            continue
        reasons = {} if verb in ("schedule", "settle") else {"reason": [move.reason for move in moves]}
        moved = transitions.tasks(verb, [move.ti_id for move in moves], tick.now, wake=False, **reasons)
        if verb == "schedule":
            metrics.TASKS_SCHEDULED.inc(len(moved))
    creation.expand(expansions)
    Wake.objects.add([run for run, _ in again], "task_ended", tick.now, [task for _, task in again])


def _begins(one: _Looked) -> list[deferring.Begin]:
    """Those whose first step is a trigger."""
    ids = {move.ti_id for move in one.found.moves if move.verb == "start_deferred"}
    tasks = one.graph.tasks
    if not ids:
        return []
    return [deferring.Begin(ti.id, one.row.id, one.row.dag_id, tasks[ti.task_id]) for ti in one.tis if ti.id in ids]


def _fail_fast(one: _Looked) -> list[Move]:
    """What a DAG that fails fast ends because a task of it failed for good."""
    if not one.graph.dag.fail_fast:
        return []
    failed = next((ti.task_id for ti in one.tis if ti.state == states.FAILED and ti.task_id in one.graph.tasks), None)
    if failed is None:
        return []
    moves = fail_fast_moves(one.graph, one.tis, failed)
    theirs = {move.ti_id for move in moves}
    one.found.moves = [move for move in one.found.moves if move.ti_id not in theirs]
    return moves


def _end_runs(looked: Sequence[_Looked], tick: Tick) -> list[RunRow]:
    """Ends runs in which nothing is open, or can ever move; returns those that only the run before them can move."""
    quiet = [one for one in looked if not one.found.expand and not any(m.verb == "schedule" for m in one.found.moves)]
    if not quiet:
        return []
    open_now = {key: how for key, *how in db.fetch(_OPEN, {"runs": [one.row.id for one in quiet]}, keep_plan=True)}
    finished: list[_Looked] = []
    waiting: list[RunRow] = []
    for one in quiet:
        is_open, is_moving = open_now[one.row.id]
        if not is_open:
            finished.append(one)
        elif is_moving:
            continue
        elif one.only is None:
            one.ended = deadlock(one.graph, one.tis, one.found)
            if one.ended and following.make_anew([(one.row.id, one.row.logical_date, one.row.version_id)]):
                one.ended = None  # it waited for what somebody deleted while it could not be looked at
                Wake.objects.add([one.row.id], "task_deleted", tick.now)
            elif one.ended is None and "past" in one.found.waiting and one.found.next_check_at is None:
                waiting.append(one.row)
        elif one.found.next_check_at is None:
            Wake.objects.add([one.row.id], "nothing_moves", tick.now)
    deciding = facts.leaf_states({one.row.id: one.graph.deciding for one in finished})
    for one in finished:
        decided = deciding.get(one.row.id, ())
        one.ended = outcome(one.graph, decided, all_ended=True, rule=one.graph.dag.run_state)  # type: ignore[arg-type]
    ending = [one for one in looked if one.ended and one.ended.state]
    cut = [one.row.id for one in ending if one.row.cut_short_at is not None]
    ends = cut_short.outcomes(cut) if cut else {}
    run_ends.end_runs([(one.row, one.graph, ends.get(one.row.id, one.ended)) for one in ending], tick.now)  # type: ignore[misc]
    return waiting


def _missed(looked: Sequence[_Looked], swept: set[int]) -> int:
    """Looks in which something moved that no wake had announced.

    A run that waits for the one before it is announced by the look at that one: while a run of its DAG is being looked
    at or has a wake, the announcement may be on its way, and nothing was missed.
    """
    found = [one for one in looked if one.row.id in swept and (one.found.moves or one.ended)]
    waiting = [one for one in found if one.graph.has_past_deps]
    if not waiting:
        return len(found)
    near = {one.row.dag_id for one in looked if one.row.id not in swept}
    near.update(dag_id for (dag_id,) in db.fetch(_DAGS_WITH_WAKES, {"dags": sorted({o.row.dag_id for o in waiting})}))
    return len(found) - sum(one.row.dag_id in near for one in waiting)


def _set_alarms(looked: Sequence[_Looked], alarms: dict[int, datetime | None], tick: Tick) -> None:
    rows = {one.row.id: one for one in looked}
    changed = {
        run_id: at
        for run_id, at in alarms.items()
        if run_id not in rows or (rows[run_id].ended is None and rows[run_id].row.next_check_at != at)
    }
    if changed:
        db.execute(_SET_ALARMS, {"now": tick.now, "runs": list(changed), "ats": list(changed.values())})
