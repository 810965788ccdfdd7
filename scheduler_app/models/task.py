"""Task instances, the history of their tries, and what hangs on them: XComs, rendered fields."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from scheduler_app.engine import states

from .dag import DagVersion
from .hold import Held
from .run import DagRun

_UNFINISHED = sorted(state for state in states.UNFINISHED if state is not None)
_FINISHED = sorted(state for state in states.FINISHED if state is not None)
_ACTIVE = sorted(state for state in states.ACTIVE if state is not None)


class Tried(models.Model):
    """What is true of one try: shared by the live row and the history."""

    dag_id = models.CharField(max_length=250)
    task_id = models.CharField(max_length=250)
    map_index = models.IntegerField(default=-1)
    state = models.CharField(max_length=20, null=True, blank=True)
    try_number = models.IntegerField(default=0)
    max_tries = models.IntegerField(default=0)
    pool = models.CharField(max_length=250, default="default_pool")
    pool_slots = models.IntegerField(default=1)
    queue = models.CharField(max_length=250, default="default")
    priority_weight = models.IntegerField(default=1)
    executor = models.CharField(max_length=250, null=True, blank=True)
    operator_name = models.CharField(max_length=250, default="")
    scheduled_when = models.DateTimeField(null=True, blank=True)
    queued_when = models.DateTimeField(null=True, blank=True)
    start_date = models.DateTimeField(null=True, blank=True)
    end_date = models.DateTimeField(null=True, blank=True)
    hostname = models.TextField(default="")
    unixname = models.TextField(default="")
    pid = models.IntegerField(null=True, blank=True)
    rendered_map_index = models.TextField(null=True, blank=True)
    note = models.TextField(null=True, blank=True)
    note_by = models.TextField(null=True, blank=True)
    #: why it ended as it did, in words ("killed by signal 9", "marked failed by ann: …")
    reason = models.TextField(null=True, blank=True)
    #: number of the last hand-out (I1)
    fence = models.BigIntegerField(default=0)

    class Meta:
        abstract = True


class TaskInstance(Tried, Held):
    """One task of one run. Its state is written by ``models.transitions`` alone."""

    id = models.BigAutoField(primary_key=True)
    dag_run = models.ForeignKey(DagRun, on_delete=models.CASCADE, related_name="task_instances", db_index=False)
    dag_version = models.ForeignKey(
        DagVersion,
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    #: the verb of engine.states that made the state
    moved_by = models.CharField(max_length=20, default="create")
    #: limits of the task, copied so that admission reads task instances alone
    max_active_tis_per_dag = models.IntegerField(null=True, blank=True)
    max_active_tis_per_dagrun = models.IntegerField(null=True, blank=True)
    #: what it takes of the keyed limits, as ``engine.limits.encode`` writes it; with a database default, for whoever
    #: inserts rows in bulk
    limits = models.TextField(default="", db_default="", blank=True)
    #: start of this try's first hand-out (reschedules and deferrals keep it); null = the next start begins a new try
    first_start_date = models.DateTimeField(null=True, blank=True)
    #: when a retry or a reschedule is due
    next_at = models.DateTimeField(null=True, blank=True)
    #: the outbox: a queued row that is not handed to its executor yet has null here
    handed_out_at = models.DateTimeField(null=True, blank=True)
    queued_by_job_id = models.BigIntegerField(null=True, blank=True)
    #: the worker that runs the attempt
    job_id = models.BigIntegerField(null=True, blank=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    external_executor_id = models.TextField(null=True, blank=True)
    #: hand-outs in a row that were lost before they began
    lost_hand_outs = models.IntegerField(default=0)
    #: number of values of the mappable return value, when something is mapped over it
    map_length = models.IntegerField(null=True, blank=True)
    #: whom it skipped when it ended (engine.skip_lists)
    skips = models.JSONField(null=True, blank=True)
    trigger_id = models.BigIntegerField(null=True, blank=True)
    trigger_timeout = models.DateTimeField(null=True, blank=True)
    next_method = models.TextField(null=True, blank=True)
    next_kwargs = models.JSONField(null=True, blank=True)

    class Meta:
        db_table = "scheduler_task_instance"
        constraints = [
            models.UniqueConstraint(fields=["dag_run", "task_id", "map_index"], name="task_instance_once"),
            models.CheckConstraint(
                condition=Q(state__isnull=True) | Q(state__in=[state for state in states.TASK_STATES if state]),
                name="task_instance_state_known",
            ),
            models.CheckConstraint(condition=Q(pool_slots__gte=1), name="task_instance_pool_slots_positive"),
        ]
        indexes = [
            # admission's global order, and the loose scan over the keys that have room
            models.Index(
                fields=["-priority_weight", "scheduled_when", "id"],
                include=["pool", "dag_id"],
                condition=Q(state="scheduled"),
                name="ti_scheduled_order",
            ),
            models.Index(
                fields=["pool", "limits", "dag_id", "dag_run", "-priority_weight", "scheduled_when", "id"],
                condition=Q(state="scheduled"),
                name="ti_scheduled_by_key",
            ),
            models.Index(fields=["id"], condition=Q(state="scheduled", next_method__isnull=False), name="ti_resumed"),
            models.Index(fields=["limits"], condition=Q(state__in=_ACTIVE) & ~Q(limits=""), name="ti_limited"),
            models.Index(
                fields=["dag_id", "dag_run"],
                include=["task_id", "pool", "pool_slots", "state", "executor"],
                condition=Q(state__in=_ACTIVE),
                name="ti_active",
            ),
            models.Index(
                fields=["dag_run"],
                condition=Q(state__isnull=True) | Q(state__in=_UNFINISHED),
                name="ti_open",
            ),
            models.Index(
                fields=["-priority_weight", "queued_when", "id"],
                condition=Q(state="queued", handed_out_at__isnull=True),
                name="ti_outbox",
            ),
            models.Index(
                # not on heartbeat_at: a heartbeat must stay a heap-only update
                fields=["id"],
                condition=Q(state__in=["running", "restarting"]),
                name="ti_with_process",
            ),
            models.Index(
                fields=["handed_out_at"], condition=Q(state="queued", handed_out_at__isnull=False), name="ti_handed_out"
            ),
            models.Index(fields=["trigger_timeout"], condition=Q(state="deferred"), name="ti_deferred"),
            # what people read: on finished rows alone, each entered once, when the row ends (queries/merged.py)
            models.Index(fields=["state", "start_date", "id"], condition=Q(state__in=_FINISHED), name="ti_by_start"),
            models.Index(fields=["state", "end_date", "id"], condition=Q(state__in=_FINISHED), name="ti_by_end"),
            models.Index(fields=["map_index", "id"], condition=Q(map_index__gte=0), name="ti_mapped"),
        ]

    def __str__(self) -> str:
        index = f"[{self.map_index}]" if self.map_index >= 0 else ""
        return f"{self.dag_id}.{self.task_id}{index}"


class TaskInstanceHistory(Tried):
    """An ended try of a task instance that went on to another one."""

    id = models.BigAutoField(primary_key=True)
    task_instance = models.ForeignKey(TaskInstance, on_delete=models.CASCADE, related_name="history")
    dag_run = models.ForeignKey(DagRun, on_delete=models.CASCADE, related_name="+", db_index=False)
    dag_version = models.ForeignKey(
        DagVersion,
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )

    class Meta:
        db_table = "scheduler_task_instance_history"
        verbose_name_plural = "task instance history"
        indexes = [models.Index(fields=["dag_run", "task_id", "map_index"], name="ti_history_of_run")]


class RenderedFields(models.Model):
    """The template fields of a task instance as its last try saw them."""

    task_instance = models.OneToOneField(
        TaskInstance, primary_key=True, on_delete=models.CASCADE, related_name="rendered_fields"
    )
    fields = models.JSONField(default=dict)

    class Meta:
        db_table = "scheduler_rendered_fields"


class XCom(models.Model):
    """A value that a task pushed, in the encoding of ``wire`` (docs/borders.md §2)."""

    id = models.BigAutoField(primary_key=True)
    dag_run = models.ForeignKey(DagRun, on_delete=models.CASCADE, related_name="xcoms", db_index=False)
    dag_id = models.CharField(max_length=250)
    task_id = models.CharField(max_length=250)
    map_index = models.IntegerField(default=-1)
    key = models.CharField(max_length=512)
    value = models.JSONField(null=True)
    timestamp = models.DateTimeField()

    class Meta:
        db_table = "scheduler_xcom"
        constraints = [
            models.UniqueConstraint(fields=["dag_run", "task_id", "key", "map_index"], name="xcom_once"),
        ]
        # the list over all runs: its order begins so, and what follows is sorted for one task at a time
        indexes = [models.Index(fields=["dag_id", "task_id"], name="xcom_of_task")]

    def __str__(self) -> str:
        return f"{self.dag_id}.{self.task_id}[{self.map_index}] {self.key}"
