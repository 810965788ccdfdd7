"""Keyed limits: named capacities that tasks of any DAG share, and what was taken of rates lately."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from django.db import models
from django.db.models import Q

from scheduler_app.engine.limits import Allowance, decode

from . import db

_IN_USE = """
SELECT limits, count(*) FROM scheduler_task_instance
WHERE state IN ('queued', 'running', 'restarting', 'deferred') AND limits <> '' GROUP BY limits
"""
_TAKEN = """
SELECT l.name, u.at, u.units FROM scheduler_limit l JOIN scheduler_limit_use u ON u.limit_id = l.id
WHERE u.at > %(now)s - l.per_seconds * interval '1 second' ORDER BY u.at
"""
#: Kept somewhat longer than the window: another scheduler's tick may have begun a while ago.
_FORGET = """
DELETE FROM scheduler_limit_use u USING scheduler_limit l
WHERE l.id = u.limit_id AND l.name = ANY(%(names)s)
  AND u.at <= %(now)s - l.per_seconds * interval '1 second' - interval '5 minutes'
"""
_TAKE = """
INSERT INTO scheduler_limit_use (limit_id, at, units)
SELECT l.id, %(now)s, w.units FROM unnest(%(names)s::text[], %(units)s::int[]) AS w(name, units)
JOIN scheduler_limit l ON l.name = w.name
"""


def naming(name: str) -> Q:
    """Task instances that take of this limit."""
    return Q(limits__startswith=f"{name}=") | Q(limits__contains=f",{name}=")


class LimitQuerySet(models.QuerySet["Limit"]):
    def allowances(
        self, now: datetime, rows: Iterable[tuple[str, int, float | None]] | None = None
    ) -> dict[str, Allowance]:
        """Every limit with what is taken of it; ``rows``: (name, amount, per_seconds) where the caller has them."""
        given = self.values_list("name", "amount", "per_seconds") if rows is None else rows
        found = {name: Allowance(amount, per_seconds) for name, amount, per_seconds in given}
        if not found:
            return found
        for text, count in db.fetch(_IN_USE):
            for name, units in decode(text):
                if name in found and found[name].per_seconds is None:
                    found[name].used += count * units
        if any(limit.per_seconds is not None for limit in found.values()):
            for name, at, units in db.fetch(_TAKEN, {"now": now}):
                found[name].used += units
                found[name].taken.append((at, units))
        return found

    def take(self, units: Mapping[str, int], now: datetime) -> None:
        """Writes down what was taken of rates; what has left their windows is forgotten."""
        if units:
            params = {"names": list(units), "units": list(units.values()), "now": now}
            db.execute(_FORGET, params)
            db.execute(_TAKE, params)


class Limit(models.Model):
    """``amount`` at once or, with ``per_seconds``, in every window of so many seconds; 0 closes it."""

    name = models.CharField(max_length=128, unique=True)
    amount = models.IntegerField()
    #: null = a limit on what is active at once
    per_seconds = models.FloatField(null=True, blank=True)
    description = models.TextField(null=True, blank=True)
    #: the DAG whose file says how much there is; null = a person says it, and files change it no more
    declared_by = models.CharField(max_length=250, null=True, blank=True)

    objects = LimitQuerySet.as_manager()

    class Meta:
        db_table = "scheduler_limit"
        constraints = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="limit_amount_valid"),
            models.CheckConstraint(
                condition=Q(per_seconds__isnull=True) | Q(per_seconds__gt=0),
                name="limit_window_positive",
                violation_error_message="The window is a number of seconds above 0, or nothing for a limit at once.",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class LimitUse(models.Model):
    """Units of a rate that one admission handed out."""

    id = models.BigAutoField(primary_key=True)
    limit = models.ForeignKey(Limit, on_delete=models.CASCADE, related_name="uses", db_index=False)
    at = models.DateTimeField()
    units = models.IntegerField()

    class Meta:
        db_table = "scheduler_limit_use"
        indexes = [models.Index(fields=["limit", "at"], name="limit_use_window")]
