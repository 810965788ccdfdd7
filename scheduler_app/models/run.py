"""Runs of DAGs, and the wakes that make a run worth a look."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import models
from django.db.models import Q

from scheduler_app.engine import states

from . import db
from .dag import DagModel, DagVersion
from .hold import Held

RUN_TYPES = ("scheduled", "manual", "operator_triggered", "backfill", "asset_triggered", "asset_materialization")


def in_states(wanted: Iterable[str]) -> Q:
    """Runs in these states, each arm as the partial index of that state says it: ``state IN (…)`` finds none of them.

    The queued runs of backfills have an index of their own.
    """
    scope = Q(pk__in=[])
    for state in wanted:
        if state == states.QUEUED:
            scope |= Q(state=state, backfill_id__isnull=True) | Q(state=state, backfill_id__isnull=False)
        else:
            scope |= Q(state=state)
    return scope


class DagRunQuerySet(models.QuerySet["DagRun"]):
    def unfinished(self) -> DagRunQuerySet:
        return self.filter(state__in=[states.QUEUED, states.RUNNING])


class DagRun(Held):
    """One run of a DAG. Its state is written by ``models.transitions`` alone."""

    id = models.BigAutoField(primary_key=True)
    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="runs", db_index=False)
    run_id = models.CharField(max_length=250)
    run_type = models.CharField(max_length=30, choices=[(kind, kind) for kind in RUN_TYPES])
    state = models.CharField(max_length=20, default=states.QUEUED)
    #: the verb of engine.states that made the state
    moved_by = models.CharField(max_length=20, default="create")
    state_reason = models.TextField(null=True, blank=True)
    logical_date = models.DateTimeField(null=True, blank=True)
    data_interval_start = models.DateTimeField(null=True, blank=True)
    data_interval_end = models.DateTimeField(null=True, blank=True)
    run_after = models.DateTimeField()
    #: the schedule's slot that this run fills; at most one run a slot (S-38)
    slot_key = models.CharField(max_length=250, null=True, blank=True)
    queued_at = models.DateTimeField(null=True, blank=True)
    start_date = models.DateTimeField(null=True, blank=True)
    end_date = models.DateTimeField(null=True, blank=True)
    #: of the first start; clearing resets start_date, never this (BC-77)
    first_start_date = models.DateTimeField(null=True, blank=True)
    #: the scheduler ended it then, as that (the code of an outcome) and for that reason; what is left are teardowns
    cut_short_at = models.DateTimeField(null=True, blank=True)
    cut_short_as = models.CharField(max_length=20, null=True, blank=True)
    cut_short_reason = models.TextField(null=True, blank=True)
    last_scheduling_decision = models.DateTimeField(null=True, blank=True)
    #: the scheduler's own alarm: retry, reschedule, time-out, end of a hold
    next_check_at = models.DateTimeField(null=True, blank=True)
    conf = models.JSONField(default=dict)
    note = models.TextField(null=True, blank=True)
    note_by = models.TextField(null=True, blank=True)
    triggered_by = models.CharField(max_length=30, default="timetable")
    triggering_user_name = models.TextField(null=True, blank=True)
    creating_job_id = models.BigIntegerField(null=True, blank=True)
    dag_version = models.ForeignKey(
        DagVersion, null=True, blank=True, on_delete=models.DO_NOTHING, related_name="+", db_index=False
    )
    bundle_version = models.TextField(null=True, blank=True)
    backfill_id = models.BigIntegerField(null=True, blank=True)
    partition_key = models.TextField(null=True, blank=True)
    clear_number = models.IntegerField(default=0)
    #: a custom timetable has still to say its data interval
    interval_pending = models.BooleanField(default=False)
    #: looks in a row that raised, the last error, and until when it is left alone (I5)
    look_failures = models.IntegerField(default=0)
    look_error = models.TextField(null=True, blank=True)
    backoff_until = models.DateTimeField(null=True, blank=True)

    objects = DagRunQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_dag_run"
        verbose_name = "DAG run"
        constraints = [
            models.UniqueConstraint(fields=["dag", "run_id"], name="dag_run_id_once"),
            models.UniqueConstraint(
                fields=["dag", "slot_key"], condition=Q(slot_key__isnull=False), name="dag_run_slot_once"
            ),
            models.CheckConstraint(condition=Q(state__in=states.RUN_STATES), name="dag_run_state_known"),
            models.CheckConstraint(
                condition=Q(data_interval_start__isnull=True)
                | Q(data_interval_end__gte=models.F("data_interval_start")),
                name="dag_run_interval_forward",
            ),
        ]
        indexes = [
            models.Index(
                fields=["dag", "run_after", "id"],
                condition=Q(state="queued", backfill_id__isnull=True),
                name="dag_run_queued",
            ),
            models.Index(
                fields=["backfill_id", "state"],
                condition=Q(state__in=["queued", "running"], backfill_id__isnull=False),
                name="dag_run_of_backfill",
            ),
            models.Index(fields=["dag"], condition=Q(state="running"), name="dag_run_running"),
            models.Index(
                fields=["next_check_at"],
                condition=Q(state__in=["queued", "running"], next_check_at__isnull=False),
                name="dag_run_alarm",
            ),
            models.Index(fields=["dag", "logical_date"], name="dag_run_by_logical_date"),
            models.Index(fields=["dag", "-run_after", "-id"], name="dag_run_newest"),
            models.Index(fields=["-end_date"], condition=Q(state="failed"), name="dag_run_failed"),
            # what people read: the newest of all DAGs, and the finished ones by their start (queries/merged.py)
            models.Index(fields=["run_after", "id"], name="dag_run_by_run_after"),
            models.Index(fields=["logical_date", "id"], name="dag_run_all_by_logical_date"),
            models.Index(
                fields=["state", "start_date", "id"],
                condition=Q(state__in=sorted(states.RUN_FINISHED)),
                name="dag_run_by_start",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.dag_id} {self.run_id}"


class WakeQuerySet(models.QuerySet["Wake"]):
    def add(
        self, run_ids: Iterable[int], reason: str, now: datetime, task_ids: Iterable[str | None] | None = None
    ) -> int:
        """Makes runs due for a look, each for one task (or None: the whole run). One statement."""
        runs = list(run_ids)
        tasks = list(task_ids) if task_ids is not None else [None] * len(runs)
        if not runs:
            return 0
        return db.execute(
            "INSERT INTO scheduler_wake (dag_run_id, task_id, reason, created_at)"
            " SELECT run, task, %s, %s FROM unnest(%s::bigint[], %s::text[]) AS w(run, task)",
            [reason, now, runs, tasks],
        )


class Wake(models.Model):
    """ "Look at this run": written in the transaction of whatever changed (design decision 6)."""

    id = models.BigAutoField(primary_key=True)
    dag_run = models.ForeignKey(DagRun, on_delete=models.DO_NOTHING, db_constraint=False, related_name="wakes")
    task_id = models.TextField(null=True, blank=True)
    reason = models.CharField(max_length=40)
    created_at = models.DateTimeField()

    objects = WakeQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_wake"
