"""Assets: what tasks make and DAGs wait for."""

from __future__ import annotations

from django.db import models

from .dag import DagModel


class Asset(models.Model):
    name = models.CharField(max_length=1500)
    uri = models.CharField(max_length=1500)
    group = models.CharField(max_length=1500, default="asset")
    extra = models.JSONField(default=dict)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    is_active = models.BooleanField(default=True)

    class Meta:
        db_table = "scheduler_asset"
        constraints = [models.UniqueConstraint(fields=["name", "uri"], name="asset_once")]

    def __str__(self) -> str:
        return self.name


class AssetAlias(models.Model):
    name = models.CharField(max_length=1500, unique=True)
    group = models.CharField(max_length=1500, default="asset")
    assets = models.ManyToManyField(Asset, related_name="aliases", db_table="scheduler_asset_alias_asset")

    class Meta:
        db_table = "scheduler_asset_alias"

    def __str__(self) -> str:
        return self.name


class AssetUse(models.Model):
    """How a DAG uses an asset, rewritten with each version of the DAG."""

    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="asset_uses")
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="uses", null=True)
    alias = models.ForeignKey(AssetAlias, on_delete=models.CASCADE, related_name="uses", null=True)
    #: schedule | outlet | inlet
    kind = models.CharField(max_length=10)
    task_id = models.CharField(max_length=250, default="")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "scheduler_asset_use"
        indexes = [models.Index(fields=["kind", "asset"], name="asset_use_by_kind")]


class AssetEvent(models.Model):
    id = models.BigAutoField(primary_key=True)
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="events")
    extra = models.JSONField(default=dict)
    source_dag_id = models.CharField(max_length=250, null=True, blank=True)
    source_task_id = models.CharField(max_length=250, null=True, blank=True)
    source_run_id = models.CharField(max_length=250, null=True, blank=True)
    source_map_index = models.IntegerField(null=True, blank=True)
    source_aliases = models.JSONField(default=list)
    partition_key = models.TextField(null=True, blank=True)
    timestamp = models.DateTimeField()
    #: runs that this event set off
    created_dagruns = models.ManyToManyField(
        "DagRun", related_name="consumed_asset_events", db_table="scheduler_asset_event_run"
    )

    class Meta:
        db_table = "scheduler_asset_event"
        indexes = [models.Index(fields=["asset", "-timestamp", "-id"], name="asset_event_newest")]


class PartitionEvent(models.Model):
    """An event that belongs to a partition of a DAG which has no run yet; the run that takes it deletes it.

    A pending partition is its rows, so there is none that exists twice (BC-105).
    """

    id = models.BigAutoField(primary_key=True)
    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="partition_events", db_index=False)
    #: of the DAG's partition, and of the event as its source wrote it
    partition_key = models.TextField()
    source_key = models.TextField()
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+")
    event = models.ForeignKey(AssetEvent, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "scheduler_partition_event"
        constraints = [
            models.UniqueConstraint(fields=["dag", "partition_key", "event"], name="partition_event_once"),
        ]


class AssetQueuedEvent(models.Model):
    """An event that a DAG has not used yet; the run that takes it deletes it (BC-103)."""

    id = models.BigAutoField(primary_key=True)
    dag = models.ForeignKey(DagModel, on_delete=models.CASCADE, related_name="queued_events")
    asset = models.ForeignKey(Asset, on_delete=models.CASCADE, related_name="+")
    event = models.ForeignKey(AssetEvent, on_delete=models.CASCADE, related_name="+")
    created_at = models.DateTimeField()

    class Meta:
        db_table = "scheduler_asset_queued_event"
        constraints = [models.UniqueConstraint(fields=["dag", "event"], name="asset_queued_event_once")]
