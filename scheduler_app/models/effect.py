"""What must happen after a state change is a row written with it (design decision 8, I8)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import models
from django.db.models import Q

from scheduler_app.engine.dag import Task

from . import db
from .run import DagRun

#: Kinds that begin so are mails: sent by us, the others run in a child.
MAIL = "mail_"


class Wanted(NamedTuple):
    """A callback to run: for a run, or (with the last two) for one try of a task instance."""

    kind: str
    dedupe_key: str
    dag_id: str
    dag_run_id: int
    payload: dict[str, Any]
    task_instance_id: int | None = None
    try_number: int | None = None


class Try(NamedTuple):
    """One try of a task instance, as an effect names it."""

    ti_id: int
    fence: int
    dag_id: str
    dag_run_id: int
    try_number: int | None


def of_task(task: Task, kind: str, of: Try, payload: dict[str, Any]) -> list[Wanted]:
    """What the end of a try asks for: the task's callback of that kind, and a mail for a failure or a retry."""
    wanted = []
    names = {"failure": task.email_on_failure, "retry": task.email_on_retry}
    if kind in task.callbacks:
        wanted.append((f"task_{kind}", payload))
    if names.get(kind) and task.email:
        error = payload.get("error") or {}
        said = {key: error.get(key) for key in ("type", "message")}
        wanted.append((f"{MAIL}{kind}", {"to": list(task.email), "reason": payload.get("reason"), "error": said}))
    return [
        Wanted(name, f"{name}:{of.ti_id}:{of.fence}", of.dag_id, of.dag_run_id, what, of.ti_id, of.try_number)
        for name, what in wanted
    ]


class CallbackQuerySet(models.QuerySet["Callback"]):
    def want(self, wanted: Sequence[Wanted], now: datetime) -> int:
        """Stores callbacks to run, in the transaction of the change that asks for them; one that is there is kept."""
        if not wanted:
            return 0
        columns = list(zip(*wanted, strict=True))
        columns[4] = tuple(json.dumps(payload) for payload in columns[4])
        return db.execute(
            "INSERT INTO scheduler_callback (kind, dedupe_key, dag_id, dag_run_id, payload, task_instance_id,"
            " try_number, state, attempts, next_at, created_at)"
            " SELECT c.*, 'pending', 0, %s, %s FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[],"
            " %s::jsonb[], %s::bigint[], %s::int[]) AS c ON CONFLICT (dedupe_key) DO NOTHING",
            [now, now, *(list(column) for column in columns)],
        )

    def claim_due(self, bundle_names: Sequence[str], job_id: int, now: datetime, limit: int) -> list[Callback]:
        """Takes due callbacks of DAGs of these bundles for a process; no other process gets them meanwhile."""
        ids = db.fetch(
            "UPDATE scheduler_callback SET state = 'running', started_at = %(now)s, job_id = %(job)s,"
            " attempts = attempts + 1, error = NULL WHERE id IN (SELECT c.id FROM scheduler_callback c"
            " JOIN scheduler_dag d ON d.dag_id = c.dag_id WHERE c.state = 'pending' AND c.next_at <= %(now)s"
            " AND NOT starts_with(c.kind, 'mail_') AND d.bundle_name = ANY(%(bundles)s)"
            " ORDER BY c.next_at, c.id LIMIT %(limit)s FOR UPDATE OF c SKIP LOCKED) RETURNING id",
            {"now": now, "job": job_id, "bundles": list(bundle_names), "limit": limit},
        )
        return list(self.filter(pk__in=[row[0] for row in ids]).order_by("pk"))

    def claim_mails(self, job_id: int, now: datetime, limit: int) -> list[Callback]:
        """Takes due mails for a process; no other process gets them meanwhile."""
        ids = db.fetch(
            "UPDATE scheduler_callback SET state = 'running', started_at = %(now)s, job_id = %(job)s,"
            " attempts = attempts + 1, error = NULL WHERE id IN (SELECT id FROM scheduler_callback"
            " WHERE state = 'pending' AND next_at <= %(now)s AND starts_with(kind, 'mail_')"
            " ORDER BY next_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED) RETURNING id",
            {"now": now, "job": job_id, "limit": limit},
        )
        return list(self.filter(pk__in=[row[0] for row in ids]).select_related("dag_run").order_by("pk"))

    def end(self, callback: Callback, now: datetime, *, error: str | None, next_at: datetime | None) -> bool:
        """One attempt is over: done, or pending again at `next_at`, or given up. False when it was taken away."""
        state = "success" if error is None else "pending" if next_at is not None else "failed"
        values: dict[str, Any] = {"state": state, "error": error, "finished_at": None if next_at else now}
        if next_at is not None:
            values["next_at"] = next_at
        return bool(self.filter(pk=callback.pk, state="running", job_id=callback.job_id).update(**values))

    def replay(self, callback_id: int, now: datetime) -> bool:
        """Due at once with all its attempts before it again, whatever became of it. False while it runs."""
        fresh: dict[str, Any] = {"state": "pending", "attempts": 0, "error": None, "job_id": None, "finished_at": None}
        return bool(self.filter(pk=callback_id).exclude(state="running").update(**fresh, next_at=now))

    def give_back_orphans(self, now: datetime, lease_seconds: float) -> int:
        """Callbacks whose process is dead are due again: they run at least once."""
        return db.execute(
            "UPDATE scheduler_callback SET state = 'pending', next_at = %(now)s WHERE id IN ("
            " SELECT c.id FROM scheduler_callback c LEFT JOIN scheduler_job j ON j.id = c.job_id"
            " WHERE c.state = 'running' AND (j.id IS NULL OR j.state <> 'running'"
            " OR j.latest_heartbeat <= %(now)s - make_interval(secs => %(lease)s))"
            " ORDER BY c.id FOR UPDATE OF c SKIP LOCKED)",
            {"now": now, "lease": lease_seconds},
        )


class Callback(models.Model):
    """One user callback to run in a child process, or one mail to send.

    ``dedupe_key`` lets the same change ask for it only once.
    """

    id = models.BigAutoField(primary_key=True)
    #: task_success, task_failure, task_retry, task_skipped, task_execute, dag_success, dag_failure, sla_miss,
    #: deadline; mail_failure, mail_retry, mail_sla_miss, mail_deadline
    kind = models.CharField(max_length=30)
    dedupe_key = models.CharField(max_length=300, unique=True)
    dag_id = models.CharField(max_length=250)
    dag_run = models.ForeignKey(DagRun, null=True, on_delete=models.CASCADE, related_name="callbacks")
    task_instance_id = models.BigIntegerField(null=True, blank=True)
    try_number = models.IntegerField(null=True, blank=True)
    #: error text, reason and whatever else the callback's context needs
    payload = models.JSONField(default=dict)
    state = models.CharField(max_length=20, default="pending")
    attempts = models.IntegerField(default=0)
    next_at = models.DateTimeField()
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    job_id = models.BigIntegerField(null=True, blank=True)
    error = models.TextField(null=True, blank=True)

    objects = CallbackQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_callback"
        constraints = [
            models.CheckConstraint(
                condition=Q(state__in=["pending", "running", "success", "failed"]), name="callback_state_known"
            )
        ]
        indexes = [
            models.Index(fields=["next_at", "id"], condition=Q(state="pending"), name="callback_due"),
            models.Index(fields=["started_at"], condition=Q(state="running"), name="callback_running"),
            models.Index(fields=["-id"], condition=Q(state="failed"), name="callback_given_up"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.dedupe_key}"


class Audit(models.Model):
    """Who did what, why, and what it was before (API: eventLogs)."""

    id = models.BigAutoField(primary_key=True)
    when = models.DateTimeField()
    event = models.CharField(max_length=60)
    #: person | task | backfill | command | scheduler
    actor_kind = models.CharField(max_length=20, default="person")
    owner = models.TextField(null=True, blank=True)
    dag_id = models.CharField(max_length=250, null=True, blank=True)
    task_id = models.CharField(max_length=250, null=True, blank=True)
    run_id = models.CharField(max_length=250, null=True, blank=True)
    map_index = models.IntegerField(null=True, blank=True)
    try_number = models.IntegerField(null=True, blank=True)
    logical_date = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(null=True, blank=True)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    extra = models.JSONField(null=True, blank=True)

    class Meta:
        db_table = "scheduler_audit"
        verbose_name_plural = "audit"
        indexes = [
            models.Index(fields=["-when", "-id"], name="audit_newest"),
            models.Index(fields=["dag_id", "-when"], name="audit_of_dag"),
        ]

    def __str__(self) -> str:
        return f"{self.when:%Y-%m-%d %H:%M:%S} {self.owner} {self.event}"


class NewTrigger(NamedTuple):
    """A trigger to store; `kwargs` in the encoding of ``wire``."""

    classpath: str
    kwargs: dict[str, Any]
    dag_id: str
    bundle_version: str | None = None


class TriggerQuerySet(models.QuerySet["Trigger"]):
    def add(self, new: Sequence[NewTrigger], now: datetime) -> list[int]:
        """Stores triggers in the transaction of the deferrals that wait for them; their ids, in order."""
        if not new:
            return []
        db.execute(f"NOTIFY {db.TRIGGER_CHANNEL}")
        rows = db.fetch(
            "INSERT INTO scheduler_trigger (classpath, kwargs, dag_id, bundle_name, bundle_version, created_date)"
            " SELECT w.classpath, w.kwargs, w.dag_id, coalesce(d.bundle_name, 'dags'), w.bundle_version, %s"
            " FROM unnest(%s::text[], %s::jsonb[], %s::text[], %s::text[]) WITH ORDINALITY"
            " AS w(classpath, kwargs, dag_id, bundle_version, place)"
            " LEFT JOIN scheduler_dag d ON d.dag_id = w.dag_id ORDER BY w.place RETURNING id",
            [
                now,
                [one.classpath for one in new],
                [json.dumps(one.kwargs) for one in new],
                [one.dag_id for one in new],
                [one.bundle_version for one in new],
            ],
        )
        return [row[0] for row in rows]


class Trigger(models.Model):
    """What a deferred task waits for: a class of the user's, run by a triggerer's child."""

    id = models.BigAutoField(primary_key=True)
    classpath = models.CharField(max_length=1000)
    #: in the encoding of ``wire``
    kwargs = models.JSONField(default=dict)
    dag_id = models.CharField(max_length=250, default="")
    bundle_name = models.TextField(default="dags")
    bundle_version = models.TextField(null=True, blank=True)
    created_date = models.DateTimeField()
    #: the triggerer that holds it, and until when unless it says so again
    triggerer_id = models.BigIntegerField(null=True, blank=True)
    claimed_until = models.DateTimeField(null=True, blank=True)

    objects = TriggerQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_trigger"
        indexes = [models.Index(fields=["claimed_until", "id"], name="trigger_claim")]
