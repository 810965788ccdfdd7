"""THE writer of states: the only code that changes the state of a task instance or a run.

A move is one statement: lock the rows in key order, check again that each is in a state which the verb may leave (and,
for a process's report, that the fence is still its own), update, write the history of the ended try, and wake the run.
Rows that do not match are left alone; the answer names those that moved (design decision 4). A wake rings the
schedulers' bell by itself.

Whoever moves a row with a living process without its fence takes it away from that process: the same statement makes
every runner look, once it commits, whether its attempts are still wanted; whoever moves one that is deferred has every
triggerer look whether its triggers are. (A report, which brings its fence, comes from
the process itself; who ends a try in its stead brings the fence too, and says ``tells``.)

The guard compares ``coalesce(state, 'none')`` on purpose: with ``state = …`` a cached plan may join the partial indexes
on ``state`` to the unnested arrays, which took 716 ms instead of 21 ms for 1,000 rows.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from scheduler_app.engine import states

from . import db, prepared

#: Columns that a caller may set with a move, and their SQL types (all task instance columns, or all run columns).
TASK_COLUMNS: dict[str, str] = {
    "max_tries": "int",
    "reason": "text",
    "next_at": "timestamptz",
    "queued_by_job_id": "bigint",
    "job_id": "bigint",
    "hostname": "text",
    "unixname": "text",
    "pid": "int",
    "external_executor_id": "text",
    "map_length": "int",
    "skips": "jsonb",
    "rendered_map_index": "text",
    "trigger_id": "bigint",
    "trigger_timeout": "timestamptz",
    "next_method": "text",
    "next_kwargs": "jsonb",
    "dag_version_id": "uuid",
}
RUN_COLUMNS: dict[str, str] = {"state_reason": "text", "dag_version_id": "uuid", "next_check_at": "timestamptz"}

NOW = "%(now)s"
_ALL = prepared.all_of("%(ids)s::bigint[]")
_ENDED = {
    "start_date": "coalesce(ti.start_date, %(now)s)",
    "end_date": NOW,
    "next_at": "NULL",
    "trigger_id": "NULL",
    "trigger_timeout": "NULL",
    "next_method": "NULL",
    "next_kwargs": "NULL",
    "handed_out_at": "NULL",
}
_FRESH = {
    "start_date": "NULL",
    "end_date": "NULL",
    "first_start_date": "NULL",
    "next_at": "NULL",
    "trigger_id": "NULL",
    "trigger_timeout": "NULL",
    "next_method": "NULL",
    "next_kwargs": "NULL",
    "reason": "NULL",
    "map_length": "NULL",
    "skips": "NULL",
    "rendered_map_index": "NULL",
    "handed_out_at": "NULL",
    "lost_hand_outs": "0",
}

_SCHEDULED = {
    "scheduled_when": NOW,
    "next_at": "NULL",
    "end_date": "NULL",
    "reason": "NULL",
    "first_start_date": "CASE WHEN ti.state = 'up_for_reschedule' THEN ti.first_start_date END",
    "start_date": "CASE WHEN ti.state = 'up_for_reschedule' THEN ti.start_date END",
}
_QUEUED = {
    "fence": "ti.fence + 1",
    "queued_when": NOW,
    "handed_out_at": "NULL",
    "job_id": "NULL",
    "heartbeat_at": "NULL",
    "external_executor_id": "NULL",
}

#: verb → what it sets besides the state. ``first_start_date`` NULL means that the next start begins a new try.
_TASK_SETS: dict[str, dict[str, str]] = {
    "schedule": _SCHEDULED,
    "start_deferred": {
        "fence": "ti.fence + 1",
        "try_number": "ti.try_number + 1",
        "scheduled_when": NOW,
        "first_start_date": NOW,
        "start_date": NOW,
        "end_date": "NULL",
        "next_at": "NULL",
        "reason": "NULL",
    },
    # ``scheduled_when`` stays: it had its turn before those that still wait, and goes on before them
    "resume": {"trigger_id": "NULL", "trigger_timeout": "NULL"},
    "settle": {
        "try_number": "ti.try_number + 1",
        "scheduled_when": NOW,
        "start_date": NOW,
        "end_date": NOW,
        "first_start_date": NOW,
        "next_at": "NULL",
    },
    "queue": _QUEUED,
    "schedule_and_queue": _SCHEDULED | _QUEUED,
    "unqueue": {"queued_when": "NULL", "handed_out_at": "NULL", "lost_hand_outs": "ti.lost_hand_outs + 1"},
    "take_back": {"queued_when": "NULL", "handed_out_at": "NULL"},
    "start": {
        "try_number": "ti.try_number + CASE WHEN ti.first_start_date IS NULL THEN 1 ELSE 0 END",
        "first_start_date": "coalesce(ti.first_start_date, %(now)s)",
        "start_date": "coalesce(ti.first_start_date, %(now)s)",
        "end_date": "NULL",
        "heartbeat_at": NOW,
        "lost_hand_outs": "0",
    },
    "succeed": _ENDED,
    "fail": _ENDED,
    "retry": {**_ENDED, "first_start_date": "NULL"},
    "reschedule": {"end_date": NOW, "trigger_id": "NULL", "next_method": "NULL", "next_kwargs": "NULL"},
    "defer": {"end_date": "NULL"},
    "skip": _ENDED,
    "upstream_fail": _ENDED,
    "remove": _ENDED,
    "clear": _FRESH,
    "restart": {"next_at": "NULL"},
    "mark_success": _ENDED,
    "mark_failed": _ENDED,
    "mark_skipped": _ENDED,
    "restore": _FRESH,
}

#: The try that these verbs end goes to the history, as "failed" where it had not ended by itself.
_KEEPS_HISTORY = frozenset({"retry", "clear"})

#: verb → why the run is due for a look (design decision 6); verbs that are not here change nothing a run waits for.
TASK_WAKES: dict[str, str] = {
    "succeed": "task_ended",
    "fail": "task_ended",
    "skip": "task_ended",
    "settle": "task_ended",
    "upstream_fail": "task_ended",
    "remove": "task_ended",
    "retry": "task_retries",
    "reschedule": "task_rescheduled",
    "clear": "task_cleared",
    "restart": "task_cleared",
    "mark_success": "task_marked",
    "mark_failed": "task_marked",
    "mark_skipped": "task_marked",
    "restore": "task_cleared",
}

#: A run that is done again when its backfill is over is a run like any other (BC-99).
_OPEN_BACKFILL = "(SELECT b.id FROM scheduler_backfill b WHERE b.id = r.backfill_id AND b.completed_at IS NULL)"

_RUN_SETS: dict[str, dict[str, str]] = {
    "start": {
        "start_date": NOW,
        "first_start_date": "coalesce(r.first_start_date, %(now)s)",
        "end_date": "NULL",
        "state_reason": "NULL",
        "cut_short_at": "NULL",
    },
    "succeed": {"end_date": NOW, "next_check_at": "NULL"},
    "fail": {"end_date": NOW, "next_check_at": "NULL"},
    "give_way": {"queued_at": NOW, "start_date": "NULL", "next_check_at": "NULL"},
    "clear": {
        "queued_at": NOW,
        "start_date": "NULL",
        "end_date": "NULL",
        "state_reason": "NULL",
        "next_check_at": "NULL",
        "cut_short_at": "NULL",
        "clear_number": "r.clear_number + 1",
        "backfill_id": _OPEN_BACKFILL,
        "look_failures": "0",
        "look_error": "NULL",
        "backoff_until": "NULL",
    },
    "mark_success": {"end_date": NOW, "start_date": "coalesce(r.start_date, %(now)s)", "next_check_at": "NULL"},
    "mark_failed": {"end_date": NOW, "start_date": "coalesce(r.start_date, %(now)s)", "next_check_at": "NULL"},
    "mark_queued": {
        "queued_at": NOW,
        "start_date": "NULL",
        "end_date": "NULL",
        "state_reason": "NULL",
        "cut_short_at": "NULL",
        "backfill_id": _OPEN_BACKFILL,
    },
}

_HISTORY_COLUMNS = (
    "dag_run_id, dag_version_id, dag_id, task_id, map_index, try_number, max_tries, pool, pool_slots, queue,"
    " priority_weight, executor, operator_name, scheduled_when, queued_when, start_date, hostname, unixname, pid,"
    " rendered_map_index, note, note_by, fence"
)


def tasks(
    verb: str,
    ids: Sequence[int],
    now: datetime,
    *,
    fences: Sequence[int] | None = None,
    wake: bool | None = None,
    wait: bool = True,
    tells: bool | None = None,
    **columns: Any,
) -> list[int]:
    """Moves task instances by a verb of ``engine.states`` and returns the ids of those that moved.

    ``columns`` are of :data:`TASK_COLUMNS`: a list gives each row its own value, anything else is for all of them.
    ``fences`` (one for each id) lets only the hand-out of that number act. ``wake=False`` is for the look itself,
    whose one pass has already seen what its moves make due. ``wait=False`` leaves out rows that somebody holds.
    ``tells``: whether runners and triggerers are told of what loses its row by it; None = when it comes without fences.
    """
    if not ids:
        return []
    wakes = verb in TASK_WAKES if wake is None else wake
    sql, params = _statement("task", verb, ids, now, columns, fences, wakes, wait, tells=tells)
    return [row[0] for row in db.fetch(sql, params, keep_plan=prepared.is_few(ids))]


def tasks_then(
    then: str,
    verb: str,
    ids: Sequence[int],
    now: datetime,
    *,
    fences: Sequence[int] | None = None,
    wait: bool = True,
    **columns: Any,
) -> list[dict[str, Any]]:
    """As :func:`tasks`, with an answer of its own: ``then`` ends the statement and reads what moved as ``moved``.

    It tells no runner, so a verb that may take a row from its process has to bring the fences.
    """
    if not ids:
        return []
    sql, params = _statement("task", verb, ids, now, columns, fences, verb in TASK_WAKES, wait, then=then)
    return db.fetch_named(sql, params, keep_plan=prepared.is_few(ids))


def runs(verb: str, ids: Sequence[int], now: datetime, **columns: Any) -> list[int]:
    """Moves runs by a verb of ``engine.states`` and returns those that moved; columns as in :func:`tasks`."""
    if not ids:
        return []
    sql, params = _statement("run", verb, ids, now, columns, None, False)
    return [row[0] for row in db.fetch(sql, params, keep_plan=prepared.is_few(ids))]


def _statement(
    kind: str,
    verb: str,
    ids: Sequence[int],
    now: datetime,
    columns: dict[str, Any],
    fences: Sequence[int] | None,
    wakes: bool,
    wait: bool = True,
    then: str = "",
    tells: bool | None = None,
) -> tuple[str, dict[str, Any]]:
    each = tuple(sorted(name for name, value in columns.items() if isinstance(value, list)))
    alike = tuple(sorted(name for name in columns if name not in each))
    for name in each:
        if len(columns[name]) != len(ids):
            raise ValueError(f"{verb}: {len(columns[name])} values of {name} for {len(ids)} rows")
    tells = fences is None if tells is None else tells
    sql = _sql(kind, verb, each, alike, fences is not None, wakes, wait, then, tells)
    params: dict[str, Any] = {"now": now, "ids": list(ids)}
    params.update({f"c_{name}": value for name, value in columns.items()})
    if fences is not None:
        params["fences"] = list(fences)
    return sql, params


def _quoted(values: frozenset[Any]) -> str:
    return ", ".join(f"'{value or 'none'}'" for value in sorted(values, key=str))


#: What somebody may be running: an attempt, or a trigger.
_HELD = states.WITH_PROCESS | {states.DEFERRED}
_TELL = f"""
 SELECT moved.id, CASE WHEN locked.was IN ({_quoted(states.WITH_PROCESS)})
                       THEN pg_notify('{db.STOP_CHANNEL}', '')::text
                       WHEN locked.was = '{states.DEFERRED}'
                       THEN pg_notify('{db.TRIGGER_STOP_CHANNEL}', '')::text END
 FROM moved JOIN locked ON locked.id = moved.id"""


@functools.cache
def _sql(
    kind: str,
    verb: str,
    each: tuple[str, ...],
    alike: tuple[str, ...],
    fenced: bool,
    wakes: bool,
    wait: bool,
    then: str,
    tells: bool,
) -> str:
    types, sets = (TASK_COLUMNS, _TASK_SETS) if kind == "task" else (RUN_COLUMNS, _RUN_SETS)
    table, row = ("scheduler_task_instance", "ti") if kind == "task" else ("scheduler_dag_run", "r")
    sources, target = _move(kind, verb)
    wanted: dict[str, str] = {"id": "%(ids)s::bigint[]"}
    if fenced:
        wanted["fence"] = "%(fences)s::bigint[]"
    wanted |= {name: f"%(c_{name})s::{types[name]}[]" for name in each}
    changes = {"state": "NULL" if target is None else f"'{target}'", "moved_by": f"'{verb}'"}
    changes |= sets[verb]
    changes |= {name: f"w.{name}" for name in each}
    changes |= {name: f"%(c_{name})s::{types[name]}" for name in alike}
    takes_away = kind == "task" and tells and bool(_HELD & sources)
    parts = [
        f"WITH w AS (SELECT * FROM unnest({', '.join(wanted.values())}) AS w({', '.join(wanted)}) {_ALL})",
        (
            f", locked AS MATERIALIZED (SELECT {row}.id{', ti.state AS was' if takes_away else ''}"
            f" FROM {table} {row} JOIN w ON w.id = {row}.id"
            f" WHERE coalesce({row}.state, 'none') IN ({_quoted(sources)})"
            f"{f' AND {row}.fence = w.fence' if fenced else ''}"
            f" ORDER BY {row}.id FOR NO KEY UPDATE OF {row}{'' if wait else ' SKIP LOCKED'})"
        ),
    ]
    if verb in _KEEPS_HISTORY and kind == "task":
        parts.append(_history_sql(each, alike))
    answer = f"{row}.*" if then else "ti.id, ti.dag_run_id, ti.task_id" if kind == "task" else "r.id"
    parts.append(
        f", moved AS (UPDATE {table} {row} SET {', '.join(f'{name} = {value}' for name, value in changes.items())}"
        f" FROM locked JOIN w ON w.id = locked.id WHERE {row}.id = locked.id"
        f" RETURNING {answer})"
    )
    if wakes:
        parts.append(_woken_sql(verb))
    parts.append(then or (_TELL if takes_away else " SELECT id FROM moved"))
    return "".join(parts)


def _woken_sql(verb: str) -> str:
    return (
        ", woken AS (INSERT INTO scheduler_wake (dag_run_id, task_id, reason, created_at)"
        f" SELECT dag_run_id, task_id, '{TASK_WAKES.get(verb, verb)}', %(now)s FROM moved"
        f" RETURNING pg_notify('{db.CHANNEL}', ''))"
    )


def _history_sql(each: tuple[str, ...], alike: tuple[str, ...]) -> str:
    """The ended try as a row of its own; a try that never began (first_start_date NULL) leaves none."""
    reason = "w.reason" if "reason" in each else "%(c_reason)s::text" if "reason" in alike else "ti.reason"
    ended = _quoted(frozenset(states.FINISHED))
    columns = _HISTORY_COLUMNS
    return (
        f", past AS (INSERT INTO scheduler_task_instance_history (task_instance_id, {columns}, state, end_date, reason)"
        f" SELECT ti.id, {', '.join(f'ti.{name.strip()}' for name in columns.split(','))},"
        f" CASE WHEN ti.state IN ({ended}) THEN ti.state ELSE 'failed' END, coalesce(ti.end_date, %(now)s), {reason}"
        " FROM scheduler_task_instance ti JOIN locked ON locked.id = ti.id JOIN w ON w.id = ti.id"
        " WHERE ti.try_number > 0 AND ti.first_start_date IS NOT NULL)"
    )


def _move(kind: str, verb: str) -> tuple[frozenset[Any], Any]:
    tables = (states.TASK_VERBS, states.TASK_ACTIONS) if kind == "task" else (states.RUN_VERBS, states.RUN_ACTIONS)
    for table in tables:
        if verb in table:
            return table[verb]  # type: ignore[return-value]
    raise ValueError(f"engine.states knows no verb {verb!r} for a {kind}")
