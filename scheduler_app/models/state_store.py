"""State that outlives an attempt: of a task instance across its tries, of an asset across runs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import models
from django.db.models import Q

from . import db
from .asset import Asset
from .run import DagRun
from .task import TaskInstance

#: Keys of a task's state under which a question to a person lies, and its answer (``sdk/operators/hitl.py``).
QUESTION_KEY = "hitl_question"
ANSWER_KEY = "hitl_response"


class TaskStateQuerySet(models.QuerySet["TaskState"]):
    def alive(self, now: datetime) -> TaskStateQuerySet:
        return self.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now))

    def of_task(self, task: TaskInstance) -> TaskStateQuerySet:
        return self.filter(dag_run_id=task.dag_run_id, task_id=task.task_id, map_index=task.map_index)

    def shown(self) -> TaskStateQuerySet:
        """What people see as a task's state: questions to them and their answers are not."""
        return self.exclude(key__in=(QUESTION_KEY, ANSWER_KEY))

    def delete_expired(self, now: datetime, limit: int) -> int:
        """Deletes at most so many entries whose time is over; how many."""
        return db.execute(
            "DELETE FROM scheduler_task_state WHERE id IN (SELECT id FROM scheduler_task_state"
            " WHERE expires_at <= %s ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED)",
            [now, limit],
        )


class TaskState(models.Model):
    """One value of a task instance, in the encoding of ``wire`` (docs/borders.md §2). It goes with its run."""

    id = models.BigAutoField(primary_key=True)
    dag_run = models.ForeignKey(DagRun, on_delete=models.CASCADE, related_name="+", db_index=False)
    dag_id = models.CharField(max_length=250)
    task_id = models.CharField(max_length=250)
    map_index = models.IntegerField(default=-1)
    key = models.CharField(max_length=512)
    value = models.JSONField(null=True)
    updated_at = models.DateTimeField()
    #: null = never
    expires_at = models.DateTimeField(null=True, blank=True)

    objects = TaskStateQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_task_state"
        constraints = [
            models.UniqueConstraint(fields=["dag_run", "task_id", "map_index", "key"], name="task_state_once"),
        ]
        indexes = [
            models.Index(fields=["expires_at"], condition=Q(expires_at__isnull=False), name="task_state_expires"),
            models.Index(fields=["dag_run"], condition=Q(key=QUESTION_KEY), name="task_state_questions"),
        ]

    def __str__(self) -> str:
        return f"{self.dag_id}.{self.task_id}[{self.map_index}] {self.key}"


class AssetState(models.Model):
    """One value of an asset, and the task instance that wrote it last."""

    id = models.BigAutoField(primary_key=True)
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="states", db_index=False)
    key = models.CharField(max_length=512)
    value = models.JSONField(null=True)
    updated_at = models.DateTimeField()
    #: {"dag_id", "run_id", "task_id", "map_index"}
    updated_by = models.JSONField(null=True)

    class Meta:
        db_table = "scheduler_asset_state"
        constraints = [models.UniqueConstraint(fields=["asset", "key"], name="asset_state_once")]

    def __str__(self) -> str:
        return f"{self.asset_id} {self.key}"


def document(row: TaskState | AssetState | None) -> dict[str, Any] | None:
    """The answer to ``get_state``."""
    return None if row is None else {"value": row.value}
