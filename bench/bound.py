"""The bare SQL of a play: its writes again, in the same batches and commits, on fresh rows, and nothing in between.

What is written is recorded in a play that is not timed: moves, wakes, alarms, the outbox, NOTIFY. What is read to
decide is left out, and so is all Python: no scheduler that writes these rows by these statements can be faster.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any
from unittest import mock

from bench.play import Stage, create, play

_WRITES = re.compile(r"\b(INSERT INTO|UPDATE scheduler_\w+|DELETE FROM|NOTIFY)\b")
_OF_RUNS = re.compile(r"UPDATE scheduler_dag_run\b")


@dataclass(frozen=True)
class Write:
    sql: str
    params: Any
    keep_plan: bool
    #: number of its transaction
    commit: int
    #: it had no transaction but its own
    alone: bool


@dataclass
class Record:
    """What one play wrote. ``runs`` and ``tasks``: the keys that it wrote about, in order."""

    writes: list[Write] = field(default_factory=list)
    statements: int = 0
    ticks: int = 0
    commits: int = 0
    runs: list[int] = field(default_factory=list)
    tasks: list[int] = field(default_factory=list)


def record(stage: Stage, shape: str, per_tick: int) -> Record:
    """Plays a shape once, not timed, and keeps its writes."""
    found = Record()
    with _keys_of(found, shape), _listening(found):
        found.ticks = play(stage, shape, per_tick).ticks
    return found


def replay(stage: Stage, shape: str, found: Record) -> float:
    """The seconds that the writes of a play take alone, about rows that were created as its were."""
    from scheduler_app.models import DagRun, db

    dag = create(shape)
    stage.beat()
    runs, tasks = _keys(dag)
    of_run, of_task = dict(zip(found.runs, runs, strict=True)), dict(zip(found.tasks, tasks, strict=True))
    writes = [replace(write, params=_moved(write, of_run, of_task)) for write in found.writes]
    groups = [list(group) for _, group in groupby(writes, key=lambda write: write.commit)]
    with db.cursor() as cursor:
        began = time.perf_counter()
        for group in groups:
            with contextlib.nullcontext() if group[0].alone else db.atomic():
                for write in group:
                    db.run(cursor, write.sql, write.params, keep_plan=write.keep_plan)
        seconds = time.perf_counter() - began
    left = DagRun.objects.filter(dag=dag).exclude(state="success").count()
    if left:
        raise SystemExit(f"{shape}: the bare SQL left {left} runs unfinished")
    DagRun.objects.filter(dag=dag).delete()
    return seconds


@contextlib.contextmanager
def _keys_of(found: Record, shape: str) -> Iterator[None]:
    """Keeps the keys of the rows that the play creates."""

    def creating(name: str) -> Any:
        dag = create(name)
        found.runs, found.tasks = _keys(dag)
        found.writes.clear()
        found.statements = 0
        return dag

    with mock.patch("bench.play.create", creating):
        yield


@contextlib.contextmanager
def _listening(found: Record) -> Iterator[None]:
    """Counts statements and commits, and keeps the writes, of everything that goes through ``models.db``."""
    from scheduler_app.models import db

    connection, run = db.connection(), db.run
    commit = connection._commit

    def counting() -> Any:
        found.commits += 1
        return commit()

    def keeping(handle: Any, sql: str, params: Any, *, keep_plan: bool, first: str = "") -> None:
        run(handle, sql, params, keep_plan=keep_plan, first=first)
        found.statements += 1
        if _WRITES.search(sql):
            found.writes.append(Write(sql, params, keep_plan, found.commits, alone=not connection.in_atomic_block))
        if not connection.in_atomic_block:
            found.commits += 1

    with mock.patch.object(connection, "_commit", counting), mock.patch.object(db, "run", keeping):
        yield


def _keys(dag: Any) -> tuple[list[int], list[int]]:
    from scheduler_app.models import DagRun, TaskInstance

    runs = list(DagRun.objects.filter(dag=dag).order_by("pk").values_list("pk", flat=True))
    return runs, list(TaskInstance.objects.filter(dag_run__in=runs).order_by("pk").values_list("pk", flat=True))


def _moved(write: Write, of_run: Mapping[int, int], of_task: Mapping[int, int]) -> Any:
    """The parameters of a write, about the new rows."""
    if isinstance(write.params, Mapping):
        ids = of_run if _OF_RUNS.search(write.sql) else of_task
        names = {"ids": ids, "runs": of_run, "task_runs": of_run}
        return {key: _mapped(value, names[key]) if key in names else value for key, value in write.params.items()}
    return [_mapped(value, of_run) for value in write.params]


def _mapped(value: Any, keys: Mapping[int, int]) -> Any:
    return [keys.get(item, item) for item in value] if isinstance(value, list) else value
