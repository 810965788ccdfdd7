"""DAGs as they stand now, their versions, tags, warnings and what did not parse."""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import models
from django.db.models import Q

from .hold import Held


class DagModelQuerySet(models.QuerySet["DagModel"]):
    def active(self) -> DagModelQuerySet:
        """Those whose file still defines them."""
        return self.filter(is_stale=False)

    def unpaused(self) -> DagModelQuerySet:
        return self.filter(is_paused=False)

    def due(self, now: datetime) -> DagModelQuerySet:
        """Those whose next scheduled run may be created, longest overdue first (index ``dag_due``)."""
        return (
            self.filter(next_dagrun_run_after__lte=now, is_paused=False, is_stale=False)
            .filter(Q(backoff_until__isnull=True) | Q(backoff_until__lte=now))
            .filter(Q(held_at__isnull=True) | Q(held_until__lte=now))
            .order_by("next_dagrun_run_after", "dag_id")
        )


class DagModel(Held):
    """One DAG. Written by the DAG processor (definition) and the scheduler (schedule); paused by people."""

    dag_id = models.CharField(primary_key=True, max_length=250)
    dag_display_name = models.TextField(default="")
    bundle_name = models.TextField(default="dags")
    bundle_version = models.TextField(null=True, blank=True)
    fileloc = models.TextField(default="")
    relative_fileloc = models.TextField(default="")
    description = models.TextField(null=True, blank=True)
    owners = models.TextField(default="")
    timezone = models.TextField(default="UTC")
    timetable = models.JSONField(default=dict)
    timetable_summary = models.TextField(null=True, blank=True)
    timetable_description = models.TextField(null=True, blank=True)
    timetable_periodic = models.BooleanField(default=False)
    #: canonical hash of timetable, catchup and dates: a change recomputes the next slot (I6)
    schedule_hash = models.TextField(default="")
    catchup = models.BooleanField(default=False)
    #: rules of the schedule, as in engine/dag.py; with database defaults, for whoever inserts rows in bulk
    misfire_policy = models.CharField(max_length=20, null=True, blank=True)
    misfire_limit = models.IntegerField(null=True, blank=True)
    overlap_policy = models.CharField(max_length=20, default="queue", db_default="queue")
    schedule_jitter = models.FloatField(default=0.0, db_default=0.0)
    start_date = models.DateTimeField(null=True, blank=True)
    end_date = models.DateTimeField(null=True, blank=True)
    is_paused = models.BooleanField(default=True)
    is_stale = models.BooleanField(default=False)
    has_import_errors = models.BooleanField(default=False)
    has_task_concurrency_limits = models.BooleanField(default=False)
    max_active_tasks = models.IntegerField(default=16)
    max_active_runs = models.IntegerField(default=16)
    max_consecutive_failed_dag_runs = models.IntegerField(default=0)
    #: the next slot: derived by engine.run_plans from the schedule and the last created slot
    next_dagrun_logical_date = models.DateTimeField(null=True, blank=True)
    next_dagrun_data_interval_start = models.DateTimeField(null=True, blank=True)
    next_dagrun_data_interval_end = models.DateTimeField(null=True, blank=True)
    next_dagrun_run_after = models.DateTimeField(null=True, blank=True)
    #: the last slot for which a scheduled run was created; moves forward only
    last_slot_logical_date = models.DateTimeField(null=True, blank=True)
    last_slot_start = models.DateTimeField(null=True, blank=True)
    last_slot_end = models.DateTimeField(null=True, blank=True)
    last_slot_run_after = models.DateTimeField(null=True, blank=True)
    last_parsed_time = models.DateTimeField(null=True, blank=True)
    last_parse_duration = models.FloatField(null=True, blank=True)
    #: scans in a row that did not find its file; it is stale after two
    missed_scans = models.IntegerField(default=0)
    latest_version = models.ForeignKey(
        "DagVersion", null=True, blank=True, on_delete=models.SET_NULL, related_name="+", db_constraint=False
    )
    #: why its next run could not be made, and until when that is not tried again (I5)
    schedule_error = models.TextField(null=True, blank=True)
    schedule_failures = models.IntegerField(default=0)
    backoff_until = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    objects = DagModelQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_dag"
        verbose_name = "DAG"
        verbose_name_plural = "DAGs"
        constraints = [
            models.CheckConstraint(condition=Q(max_active_tasks__gte=1), name="dag_max_active_tasks_positive"),
            models.CheckConstraint(condition=Q(max_active_runs__gte=1), name="dag_max_active_runs_positive"),
        ]
        indexes = [
            models.Index(
                fields=["next_dagrun_run_after", "dag_id"],
                condition=Q(is_paused=False, is_stale=False, next_dagrun_run_after__isnull=False),
                name="dag_due",
            ),
            models.Index(fields=["bundle_name", "relative_fileloc"], name="dag_by_file"),
        ]

    def __str__(self) -> str:
        return self.dag_id


class DagVersion(models.Model):
    """One shape of a DAG: the serialised document (``engine/dag.py``) under its canonical hash. Never changed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="versions")
    version_number = models.IntegerField()
    dag_hash = models.TextField()
    document = models.JSONField()
    bundle_name = models.TextField(default="dags")
    bundle_version = models.TextField(null=True, blank=True)
    source_sha256 = models.CharField(max_length=64, default="")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "scheduler_dag_version"
        constraints = [models.UniqueConstraint(fields=["dag", "version_number"], name="dag_version_number")]

    def __str__(self) -> str:
        return f"{self.dag_id} v{self.version_number}"


class DagTag(models.Model):
    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=100)

    class Meta:
        db_table = "scheduler_dag_tag"
        constraints = [models.UniqueConstraint(fields=["dag", "name"], name="dag_tag_once")]
        indexes = [models.Index(fields=["name"], name="dag_tag_by_name")]

    def __str__(self) -> str:
        return self.name


class DagWarning(models.Model):
    """Something about a DAG that its author should know, but that does not stop it."""

    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="warnings")
    warning_type = models.TextField()
    message = models.TextField()
    timestamp = models.DateTimeField()

    class Meta:
        db_table = "scheduler_dag_warning"
        constraints = [models.UniqueConstraint(fields=["dag", "warning_type", "message"], name="dag_warning_once")]


class DagFileQuerySet(models.QuerySet["DagFile"]):
    def read_again(self, name: str, now: datetime) -> int:
        """Asks for another parse of the files that read `name` ("variable:key") while they were parsed."""
        readers = self.filter(asked__contains=[name])
        return readers.exclude(parse_requested_at__gte=now).update(parse_requested_at=now)


class DagFile(models.Model):
    """What the DAG processor knows of one file of a bundle: an unchanged file costs one stat."""

    bundle_name = models.TextField()
    relative_path = models.TextField()
    #: mtime (ns), size and the same of every module that it imports below the folder: {"path": [mtime_ns, size]}
    stamp = models.JSONField(default=dict)
    last_parsed_at = models.DateTimeField(null=True)
    last_duration = models.FloatField(null=True)
    missed_scans = models.IntegerField(default=0)
    parse_requested_at = models.DateTimeField(null=True)
    #: what its import read, as "variable:key" and "connection:id": a change of one has it parsed again
    asked = models.JSONField(default=list)

    objects = DagFileQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_dag_file"
        constraints = [models.UniqueConstraint(fields=["bundle_name", "relative_path"], name="dag_file_once")]


class ParseError(models.Model):
    """Airflow's *import error*: why a file, or one DAG of it, could not be read."""

    timestamp = models.DateTimeField()
    bundle_name = models.TextField(default="dags")
    filename = models.TextField()
    stack_trace = models.TextField()

    class Meta:
        db_table = "scheduler_import_error"
        constraints = [models.UniqueConstraint(fields=["bundle_name", "filename"], name="import_error_once")]


class BundleVersion(models.Model):
    """The DAG folder at one moment: a manifest path → sha256 over :class:`SourceBlob` rows."""

    bundle_name = models.TextField()
    version = models.CharField(max_length=64)
    manifest = models.JSONField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "scheduler_bundle_version"
        constraints = [models.UniqueConstraint(fields=["bundle_name", "version"], name="bundle_version_once")]


class SourceBlob(models.Model):
    """One file's bytes, stored once however many versions hold it."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    content = models.BinaryField()

    class Meta:
        db_table = "scheduler_source_blob"


__all__ = [
    "BundleVersion",
    "DagFile",
    "DagModel",
    "DagTag",
    "DagVersion",
    "DagWarning",
    "ParseError",
    "SourceBlob",
]
