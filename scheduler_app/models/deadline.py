"""By when a run or a task has to be done: rows made with the run, looked at when their time has come (F-25)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import models
from django.db.models import Q

from scheduler_app.conf import conf
from scheduler_app.engine.deadlines import RunTimes, deadline_at, sla_at

from . import db
from .run import DagRun

if TYPE_CHECKING:
    from .creation import NewRun

#: Earlier runs whose average a deadline may ask for.
MOST_RUNTIMES = 100

_RUNTIMES = """
SELECT extract(epoch FROM end_date - start_date)::float FROM scheduler_dag_run
WHERE dag_id = %(dag)s AND state = 'success' AND start_date IS NOT NULL AND end_date IS NOT NULL
ORDER BY run_after DESC, id DESC LIMIT %(limit)s
"""


class _Row(NamedTuple):
    dag_id: str
    dag_run_id: int
    kind: str
    task_id: str | None
    name: str | None
    due_at: datetime
    callback: str | None


class DeadlineQuerySet(models.QuerySet["Deadline"]):
    def add(self, made: Sequence[tuple[NewRun, int]], now: datetime) -> int:
        """The deadlines and SLAs of new runs, given with their primary keys, in the transaction that makes them."""
        runtimes: dict[str, list[float]] = {}
        rows = [row for run, key in made for row in (*_deadlines(run, key, now, runtimes), *_slas(run, key, now))]
        if not rows:
            return 0
        return db.execute(
            "INSERT INTO scheduler_deadline (dag_id, dag_run_id, kind, task_id, name, due_at, callback, created_at)"
            " SELECT d.*, %s FROM unnest(%s::text[], %s::bigint[], %s::text[], %s::text[], %s::text[],"
            " %s::timestamptz[], %s::jsonb[]) AS d",
            [now, *(list(column) for column in zip(*rows, strict=True))],
        )


class Deadline(models.Model):
    """One instant by which something of a run has to be done.

    A row of what was in time is deleted then; one that was missed stays, with when that was seen.
    """

    id = models.BigAutoField(primary_key=True)
    dag_id = models.CharField(max_length=250)
    dag_run = models.ForeignKey(DagRun, on_delete=models.CASCADE, related_name="deadlines")
    #: run (a DeadlineAlert of the DAG) | sla (of a task)
    kind = models.CharField(max_length=10)
    task_id = models.CharField(max_length=250, null=True, blank=True)
    name = models.TextField(null=True, blank=True)
    due_at = models.DateTimeField()
    #: of a DeadlineAlert: what is called, as engine/deadlines.py describes it
    callback = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField()
    missed_at = models.DateTimeField(null=True, blank=True)

    objects = DeadlineQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_deadline"
        constraints = [models.CheckConstraint(condition=Q(kind__in=["run", "sla"]), name="deadline_kind_known")]
        indexes = [
            models.Index(fields=["due_at", "id"], condition=Q(missed_at__isnull=True), name="deadline_due"),
            models.Index(fields=["-missed_at", "-id"], condition=Q(missed_at__isnull=False), name="deadline_missed"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.dag_id} {self.task_id or ''} at {self.due_at:%Y-%m-%d %H:%M:%S}"


def _deadlines(run: NewRun, key: int, now: datetime, runtimes: dict[str, list[float]]) -> Iterator[_Row]:
    times = RunTimes(run.run_after, run.logical_date, run.data_interval_end, now)
    for deadline in run.graph.dag.deadline:
        due = deadline_at(deadline, times, _runtimes(run.dag_id, deadline, runtimes))
        if due is not None:
            callback = json.dumps(deadline["callback"])
            yield _Row(run.dag_id, key, "run", None, deadline.get("name"), due, callback)


def _runtimes(dag_id: str, deadline: Mapping[str, Any], known: dict[str, list[float]]) -> list[float]:
    if deadline["reference"]["kind"] != "average_runtime":
        return []
    if dag_id not in known:
        known[dag_id] = [row[0] for row in db.fetch(_RUNTIMES, {"dag": dag_id, "limit": MOST_RUNTIMES})]
    return known[dag_id]


def _slas(run: NewRun, key: int, now: datetime) -> Iterator[_Row]:
    """Of scheduled runs. One that is caught up after its time is over has none: each slot would have missed it."""
    dag = run.graph.dag
    if not dag.has_sla or run.run_type != "scheduled" or not conf().check_slas:
        return
    times = RunTimes(run.run_after, run.logical_date, run.data_interval_end, now)
    for task in dag.tasks:
        if task.sla is not None:
            due = sla_at(task.sla, times)
            if due > now or not dag.catchup:
                yield _Row(run.dag_id, key, "sla", task.task_id, None, due, None)
