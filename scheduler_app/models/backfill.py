"""Backfills: runs for a range of past slots of a schedule, started by the scheduler under a limit of their own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import models
from django.db.models import Q

from scheduler_app.engine.run_plans import RunPlan

from . import db
from .dag import DagModel
from .run import DagRun

#: Which slots that have a run already are run again.
REPROCESS = ("none", "failed", "completed")


class BackfillQuerySet(models.QuerySet["Backfill"]):
    def unfinished(self) -> BackfillQuerySet:
        return self.filter(completed_at__isnull=True)

    def waiting_for_slots(self) -> BackfillQuerySet:
        return self.unfinished().filter(slots_pending=True)


class Backfill(models.Model):
    """One request for runs of the past. Its slots are stored with it, in the order in which they are to run."""

    id = models.BigAutoField(primary_key=True)
    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="backfills")
    from_date = models.DateTimeField()
    to_date = models.DateTimeField()
    dag_run_conf = models.JSONField(default=dict)
    reprocess_behavior = models.CharField(max_length=20, choices=[(name, name) for name in REPROCESS], default="none")
    reverse = models.BooleanField(default=False)
    #: runs that are done again take the DAG's newest version; null = as the setting for all runs says
    run_on_latest_version = models.BooleanField(null=True, blank=True)
    max_active_runs = models.IntegerField(default=10)
    is_paused = models.BooleanField(default=False)
    #: its slots have still to be listed by the timetable class of the DAG's author, in a child
    slots_pending = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    completed_at = models.DateTimeField(null=True, blank=True)
    triggering_user_name = models.TextField(null=True, blank=True)
    #: why its runs could not be made, and until when that is not tried again (I5)
    failures = models.IntegerField(default=0)
    error = models.TextField(null=True, blank=True)
    backoff_until = models.DateTimeField(null=True, blank=True)

    objects = BackfillQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_backfill"
        constraints = [
            # "one at a time" is the database's to say, whoever asks at the same moment
            models.UniqueConstraint(fields=["dag"], condition=Q(completed_at__isnull=True), name="backfill_one_a_dag"),
            models.CheckConstraint(condition=Q(max_active_runs__gte=1), name="backfill_max_active_runs_positive"),
            models.CheckConstraint(condition=Q(reprocess_behavior__in=REPROCESS), name="backfill_reprocess_known"),
        ]
        indexes = [models.Index(fields=["id"], condition=Q(completed_at__isnull=True), name="backfill_open")]

    def __str__(self) -> str:
        return f"backfill {self.pk} of {self.dag_id}"


class BackfillSlotQuerySet(models.QuerySet["BackfillSlot"]):
    def add(self, backfill: Backfill, plans: Sequence[RunPlan]) -> int:
        """Stores the slots of a new backfill, in the order in which they are to run."""
        columns = list(zip(*plans, strict=True)) or [()] * len(RunPlan._fields)
        named = dict(zip(RunPlan._fields, columns, strict=True))
        return db.execute(
            "INSERT INTO scheduler_backfill_slot"
            " (backfill_id, ordinal, logical_date, data_interval_start, data_interval_end, run_after)"
            " SELECT %(backfill)s, w.nth, w.logical_date, w.first, w.last, w.run_after"
            " FROM unnest(%(logical)s::timestamptz[], %(start)s::timestamptz[], %(end)s::timestamptz[],"
            " %(after)s::timestamptz[]) WITH ORDINALITY AS w(logical_date, first, last, run_after, nth)",
            {
                "backfill": backfill.pk,
                "logical": list(named["logical_date"]),
                "start": list(named["data_interval_start"]),
                "end": list(named["data_interval_end"]),
                "after": list(named["run_after"]),
            },
        )


class BackfillSlot(models.Model):
    """One slot of a backfill, and what became of it."""

    id = models.BigAutoField(primary_key=True)
    backfill = models.ForeignKey(Backfill, on_delete=models.CASCADE, related_name="slots")
    ordinal = models.IntegerField()
    logical_date = models.DateTimeField(null=True, blank=True)
    data_interval_start = models.DateTimeField(null=True, blank=True)
    data_interval_end = models.DateTimeField(null=True, blank=True)
    run_after = models.DateTimeField()
    #: null = not looked at yet | created | cleared | already exists | in flight | cancelled
    outcome = models.CharField(max_length=20, null=True, blank=True)
    dag_run = models.ForeignKey(
        DagRun, null=True, blank=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="backfill_slots"
    )

    objects = BackfillSlotQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_backfill_slot"
        constraints = [models.UniqueConstraint(fields=["backfill", "ordinal"], name="backfill_slot_once")]
        indexes = [
            models.Index(fields=["backfill", "ordinal"], condition=Q(outcome__isnull=True), name="backfill_slot_to_do")
        ]


def last_of(dag_id: str, logical_dates: Sequence[datetime]) -> dict[datetime, DagRun]:
    """By logical date: the run of it that a backfill is about, which is the one that was made last."""
    rows = DagRun.objects.filter(dag_id=dag_id, logical_date__in=list(logical_dates)).order_by("id")
    return {run.logical_date: run for run in rows if run.logical_date is not None}
