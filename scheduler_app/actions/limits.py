"""Keyed limits: a person's number holds over what files say."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import Q

from scheduler_app.access import Actor
from scheduler_app.engine import states
from scheduler_app.engine.limits import NAME
from scheduler_app.models import Limit, TaskInstance, db
from scheduler_app.models.limit import naming

from . import journal, permit
from .errors import Conflict, Invalid, Missing


def create(
    actor: Actor,
    name: str,
    amount: int,
    now: datetime,
    *,
    per_seconds: float | None = None,
    description: str | None = None,
) -> Limit:
    """A new limit: ``amount`` at once, or in every window of ``per_seconds``. Raises Conflict when the name is taken,
    Forbidden, Invalid."""
    permit.require(actor, "add", "limit")
    _check(name, amount, per_seconds)
    with db.atomic():
        fields = {"amount": amount, "per_seconds": per_seconds, "description": description}
        row, created = Limit.objects.get_or_create(name=name, defaults=fields)
        if not created:
            raise Conflict(f"Limit with name: `{name}` already exists")
        journal.record(actor, "post_limit", now, after=_facts(row))
        db.notify()
    return row


def change(actor: Actor, name: str, now: datetime, **fields: Any) -> Limit:
    """Sets any of ``amount``, ``per_seconds``, ``description``. Files do not change its number any more.

    Raises Missing, Forbidden, Invalid.
    """
    permit.require(actor, "change", "limit")
    with db.atomic():
        row = _locked(name)
        before = _facts(row)
        for field, value in fields.items():
            setattr(row, field, value)
        _check(row.name, row.amount, row.per_seconds)
        if {"amount", "per_seconds"} & fields.keys():
            row.declared_by = None
        row.save(update_fields=[*fields, "declared_by"])
        journal.record(actor, "patch_limit", now, before=before, after=_facts(row))
        db.notify()
    return row


def delete(actor: Actor, name: str, now: datetime) -> None:
    """Deletes a limit. Raises Missing, Forbidden, Conflict (tasks that have not ended name it: they would wait)."""
    permit.require(actor, "delete", "limit")
    with db.atomic():
        row = _locked(name)
        unfinished = Q(state__isnull=True) | Q(state__in=[one for one in states.UNFINISHED if one])
        if TaskInstance.objects.filter(naming(name), unfinished).exists():
            raise Conflict(f"Tasks that have not ended name the limit `{name}`. Delete it when they have ended.")
        journal.record(actor, "delete_limit", now, before=_facts(row))
        row.delete()


def _locked(name: str) -> Limit:
    row = Limit.objects.filter(name=name).select_for_update(no_key=True).first()
    if row is None:
        raise Missing(f"The Limit with name: `{name}` was not found")
    return row


def _check(name: str, amount: int, per_seconds: float | None) -> None:
    if not NAME.fullmatch(name):
        raise Invalid("name", "A name has up to 128 letters, digits and _ . - : /, none of the last four first.")
    if amount < 0:
        raise Invalid("amount", "The amount is a number from 0 (closed) up.")
    if per_seconds is not None and per_seconds <= 0:
        raise Invalid("per_seconds", "The window is a number of seconds above 0, or nothing for a limit at once.")


def _facts(row: Limit) -> dict[str, Any]:
    return {
        "name": row.name,
        "amount": row.amount,
        "per_seconds": row.per_seconds,
        "description": row.description,
        "declared_by_a_file": row.declared_by is not None,
    }
