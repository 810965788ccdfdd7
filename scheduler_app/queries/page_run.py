"""One run: how it stands, and its task instances."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, QuerySet

from scheduler_app.engine import states
from scheduler_app.models import DagRun, TaskInstance, db

#: Task instances on one page of a run.
PAGE: Final = 500
#: Failed tasks that the head of a failed run names.
CULPRITS: Final = 3
#: Runs that "usually" is taken from.
USUAL_OF: Final = 20


@dataclass(frozen=True, slots=True)
class TaskRow:
    id: int
    task_id: str
    map_index: int
    rendered_map_index: str | None
    state: str | None
    try_number: int
    max_tries: int
    operator: str
    pool: str
    start: datetime | None
    end: datetime | None
    hostname: str
    reason: str | None
    next_at: datetime | None
    held_at: datetime | None
    held_by: str | None
    held_why: str | None
    held_until: datetime | None

    @property
    def has_log(self) -> bool:
        return self.start is not None or self.try_number > 0


@dataclass(frozen=True, slots=True)
class RunTasks:
    rows: list[TaskRow]
    #: (state or "none", count) in the order in which pages list states
    counts: list[tuple[str, int]]
    total: int


_FIELDS: Final = (
    "id", "task_id", "map_index", "rendered_map_index", "state", "try_number", "max_tries", "operator_name", "pool",
    "start_date", "end_date", "hostname", "reason", "next_at", "held_at", "held_by", "held_why", "held_until",
)  # fmt: skip


def get_run(visible: QuerySet[DagRun], dag_id: str, run_id: str) -> DagRun | None:
    """The run with its DAG and its version number. One query."""
    found = visible.filter(dag_id=dag_id, run_id=run_id).select_related("dag", "dag_version")
    return found.defer("dag_version__document").first()


def run_tasks(run_pk: int, *, state: str | None = None, page: int = 1) -> RunTasks:
    """The task instances of a run, a page of them, in the order of the file. Two queries."""
    instances = TaskInstance.objects.filter(dag_run_id=run_pk)
    tally = {name or "none": n for name, n in instances.order_by().values_list("state").annotate(n=Count("id"))}
    if state:
        instances = instances.filter(state__isnull=True) if state == "none" else instances.filter(state=state)
    start = (page - 1) * PAGE
    rows = [TaskRow(*record) for record in instances.order_by("id").values_list(*_FIELDS)[start : start + PAGE]]
    counts = [(name or "none", tally[name or "none"]) for name in states.TASK_STATES if (name or "none") in tally]
    return RunTasks(rows, counts, sum(tally.values()))


@dataclass(frozen=True, slots=True)
class Culprit:
    """A task that failed by itself, and not for another one."""

    task_id: str
    map_index: int
    reason: str | None


def first_failed(run_pk: int) -> list[Culprit]:
    """The first :data:`CULPRITS` tasks of a run that failed, and one more if there are more. One query."""
    rows = TaskInstance.objects.filter(dag_run_id=run_pk, state=states.FAILED).order_by("end_date", "id")
    return [Culprit(*row) for row in rows.values_list("task_id", "map_index", "reason")[: CULPRITS + 1]]


def usual_seconds(dag_id: str) -> float | None:
    """The median duration of the newest successful runs; None while there is none. One query."""
    (row,) = db.fetch(
        """
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM end_date - start_date))
        FROM (
            SELECT start_date, end_date FROM scheduler_dag_run
            WHERE dag_id = %s AND state = 'success' ORDER BY run_after DESC, id DESC LIMIT %s
        ) newest
        """,
        [dag_id, USUAL_OF],
    )
    return None if row[0] is None else float(row[0])


@dataclass(frozen=True, slots=True)
class RunPulse:
    """What the live poll of a run page compares: the run's state and each row's (id, state, try, start, end)."""

    state: str
    held: bool
    rows: list[tuple[int, str | None, int, datetime | None, datetime | None]]

    @property
    def shape(self) -> str:
        """Names what a change in place cannot follow: the run's own state, and which rows there are, at which try."""
        return digest([self.state, self.held, *((pk, number, start) for pk, _state, number, start, _end in self.rows)])

    @property
    def token(self) -> str:
        return f"{self.shape}.{digest(self.rows)}"


def run_pulse(visible: QuerySet[DagRun], dag_id: str, run_id: str) -> RunPulse | None:
    """One query; None when there is no such run, or the reader may not see it."""
    found = visible.filter(dag_id=dag_id, run_id=run_id).order_by("task_instances__id")
    records = list(
        found.values_list(
            "state", "held_at", "task_instances__id", "task_instances__state", "task_instances__try_number",
            "task_instances__start_date", "task_instances__end_date",
        )[:PAGE]
    )  # fmt: skip
    if not records:
        return None
    rows = [record[2:] for record in records if record[2] is not None]
    return RunPulse(records[0][0], records[0][1] is not None, rows)


def digest(parts: Iterable[object]) -> str:
    """A short name of what a page shows: another one when any part differs."""
    return hashlib.blake2b(repr(list(parts)).encode(), digest_size=9).hexdigest()
