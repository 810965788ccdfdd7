"""Pools: named slots that task instances share."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import models
from django.db.models import Q

from . import db


@dataclass(frozen=True, slots=True)
class PoolUse:
    """The numbers of one pool as everybody sees them; ``open_slots`` may be infinite or negative."""

    pool: str
    slots: int
    include_deferred: bool
    running: int
    queued: int
    scheduled: int
    deferred: int

    @property
    def occupied(self) -> int:
        return self.running + self.queued + (self.deferred if self.include_deferred else 0)

    @property
    def open_slots(self) -> float:
        return float("inf") if self.slots == -1 else self.slots - self.occupied


class PoolQuerySet(models.QuerySet["Pool"]):
    def use(self) -> dict[str, PoolUse]:
        """Slots by state for every pool, in one statement over the active and scheduled rows."""
        rows = db.fetch(
            """
            SELECT p.pool, p.slots, p.include_deferred,
                   coalesce(sum(t.slots) FILTER (WHERE t.state IN ('running', 'restarting')), 0)::int,
                   coalesce(sum(t.slots) FILTER (WHERE t.state = 'queued'), 0)::int,
                   coalesce(sum(t.slots) FILTER (WHERE t.state = 'scheduled'), 0)::int,
                   coalesce(sum(t.slots) FILTER (WHERE t.state = 'deferred'), 0)::int
            FROM scheduler_pool p
            LEFT JOIN (
                SELECT pool, state, sum(pool_slots) AS slots FROM scheduler_task_instance
                WHERE state IN ('queued', 'running', 'restarting', 'deferred') GROUP BY pool, state
                UNION ALL
                SELECT pool, state, sum(pool_slots) FROM scheduler_task_instance
                WHERE state = 'scheduled' GROUP BY pool, state
            ) t ON t.pool = p.pool
            GROUP BY p.id ORDER BY p.pool
            """
        )
        return {row[0]: PoolUse(*row) for row in rows}


class Pool(models.Model):
    """``slots`` −1 = no limit. ``default_pool`` exists by migration and cannot be deleted."""

    pool = models.CharField(max_length=256, unique=True)
    slots = models.IntegerField(default=128)
    description = models.TextField(null=True, blank=True)
    include_deferred = models.BooleanField(default=False)

    objects = PoolQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_pool"
        constraints = [models.CheckConstraint(condition=Q(slots__gte=-1), name="pool_slots_valid")]

    def __str__(self) -> str:
        return self.pool
