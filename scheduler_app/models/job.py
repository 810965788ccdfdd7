"""Processes of ours: who is alive, judged by the database's clock alone (F-01)."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

JOB_TYPES = ("SchedulerJob", "DagProcessorJob", "TriggererJob", "LocalTaskJob", "CeleryWorkerJob")


class JobQuerySet(models.QuerySet["Job"]):
    def alive(self, now: datetime, lease_seconds: float) -> JobQuerySet:
        return self.filter(state="running", latest_heartbeat__gt=now - timedelta(seconds=lease_seconds))

    def dead(self, now: datetime, lease_seconds: float) -> JobQuerySet:
        """Still called running, but silent for longer than their lease."""
        return self.filter(state="running", latest_heartbeat__lte=now - timedelta(seconds=lease_seconds))


class Job(models.Model):
    """One process. A restarted process is a new row (its id is its epoch), so nobody mistakes one for the other."""

    id = models.BigAutoField(primary_key=True)
    job_type = models.CharField(max_length=30)
    #: running | success (stopped in order) | failed (its lease ran out, or it crashed)
    state = models.CharField(max_length=20, default="running")
    hostname = models.TextField(default="")
    unixname = models.TextField(default="")
    pid = models.IntegerField(null=True)
    executor_class = models.TextField(null=True, blank=True)
    bundle_names = models.JSONField(default=list)
    start_date = models.DateTimeField()
    end_date = models.DateTimeField(null=True, blank=True)
    latest_heartbeat = models.DateTimeField()
    #: what it says of itself: slots, attempts, folder
    detail = models.JSONField(default=dict)

    objects = JobQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_job"
        constraints = [
            models.CheckConstraint(condition=Q(state__in=["running", "success", "failed"]), name="job_state_known")
        ]
        indexes = [
            models.Index(fields=["job_type", "-latest_heartbeat"], condition=Q(state="running"), name="job_running"),
            models.Index(fields=["-start_date"], name="job_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.job_type} {self.id}"

    def is_alive(self, now: datetime, lease_seconds: float) -> bool:
        return self.state == "running" and self.latest_heartbeat > now - timedelta(seconds=lease_seconds)
