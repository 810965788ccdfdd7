"""Attempts of a task that does nothing, run in the base before it forks anything.

Python rewrites a function's code for the types it meets (at its eighth call), notes where it found each attribute, and
remembers which class counts as which. Whoever does that after a fork copies the pages that it writes to, in every
attempt anew; the rehearsal does it once, for all that come.
"""

from __future__ import annotations

import os
import socket
from typing import Any

from scheduler_app.attempt_log import LogWriter
from scheduler_app.sdk import scope
from scheduler_app.sdk.dag import DAG
from scheduler_app.sdk.operators.python import PythonOperator
from scheduler_app.usercode import attempt, output
from scheduler_app.usercode.port import WirePort
from scheduler_app.wire import DEFAULT_MAX_BYTES, BlockingChannel, pack

#: A function's code is rewritten at its eighth call; some are called by others only once those are.
_TIMES = 10
_DAG_ID, _TASK_ID = "rehearsal", "task"
_NOON = "2020-01-01T12:00:00+00:00"


def rehearse() -> list[dict[str, Any]]:
    """How each attempt ended. Output and logging are as they were when it returns."""
    with DAG(_DAG_ID, schedule=None) as dag:
        PythonOperator(task_id=_TASK_ID, python_callable=_nothing)
    scope.reset()
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        with output.borrowed():
            return [_attempt(dag, LogWriter(null, attempt.clock)) for _ in range(_TIMES)]
    finally:
        os.close(null)


def _nothing(ti: Any) -> None:
    """What the task does."""


def _attempt(dag: DAG, writer: LogWriter) -> dict[str, Any]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(pack(_start()))
        channel = BlockingChannel(theirs, DEFAULT_MAX_BYTES)
        output.lead_to(writer)
        outcome = attempt.perform(channel, WirePort(channel, writer.masks), lambda: {_DAG_ID: dag}, writer)
        output.finish()
    return outcome


def _start() -> dict[str, Any]:
    """As the runner sends it (docs/borders.md §3)."""
    run = {
        "dag_id": _DAG_ID,
        "run_id": "rehearsal",
        "run_type": "scheduled",
        "logical_date": _NOON,
        "data_interval_start": _NOON,
        "data_interval_end": _NOON,
        "run_after": _NOON,
        "start_date": _NOON,
        "end_date": None,
        "queued_at": _NOON,
        "conf": {},
        "state": "running",
        "note": None,
        "triggering_user_name": None,
        "consumed_asset_events": [],
        "clear_number": 0,
        "partition_key": None,
    }
    ti = {
        "id": 0,
        "dag_id": _DAG_ID,
        "run_id": "rehearsal",
        "task_id": _TASK_ID,
        "map_index": -1,
        "try_number": 1,
        "max_tries": 0,
        "fence": 0,
        "queue": "default",
        "pool": "default_pool",
        "start_date": _NOON,
        "first_start_date": _NOON,
        "hostname": "",
        "next_method": None,
        "next_kwargs": None,
        "priority_weight": 1,
        "task_display_name": _TASK_ID,
    }
    return {
        "op": "start",
        "ti": ti,
        "run": run,
        "upstream_map_lengths": {},
        "log_url": "",
        "mark_success_url": None,
    }
