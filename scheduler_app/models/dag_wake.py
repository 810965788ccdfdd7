"""The wakes that make a DAG itself worth a look: what a run's end may mean for its DAG.

Whoever ends a run holds the run's row and may not ask for the DAG's (I9): so it writes a row, and a phase that begins
with the DAG's lock goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import models

from . import db
from .dag import DagModel


class DagWakeQuerySet(models.QuerySet["DagWake"]):
    def add_failed(self, dag_ids: Iterable[str], now: datetime) -> int:
        """A run of these DAGs failed: those that are paused after so many failures become due. Locks nothing."""
        return db.execute(
            "INSERT INTO scheduler_dag_wake (dag_id, reason, created_at)"
            " SELECT dag_id, 'run_failed', %s FROM scheduler_dag"
            " WHERE dag_id = ANY(%s) AND max_consecutive_failed_dag_runs > 0 AND NOT is_paused ORDER BY dag_id",
            [now, sorted(set(dag_ids))],
        )


class DagWake(models.Model):
    """ "Look at this DAG": written in the transaction of whatever changed."""

    id = models.BigAutoField(primary_key=True)
    dag = models.ForeignKey(DagModel, on_delete=models.DO_NOTHING, db_constraint=False, related_name="wakes")
    reason = models.CharField(max_length=40)
    created_at = models.DateTimeField()

    objects = DagWakeQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_dag_wake"
