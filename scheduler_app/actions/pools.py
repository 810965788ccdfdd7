"""Pools: named slots. ``default_pool`` may be resized, not renamed or deleted."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from scheduler_app.access import Actor
from scheduler_app.models import Pool, TaskInstance, db

from . import journal, permit
from .errors import Conflict, Invalid, Missing, Refused

DEFAULT = "default_pool"


def create(
    actor: Actor,
    name: str,
    slots: int,
    now: datetime,
    *,
    description: str | None = None,
    include_deferred: bool = False,
) -> Pool:
    """A new pool; ``slots`` −1 is no limit. Raises Conflict when the name is taken, Forbidden, Invalid."""
    permit.require(actor, "add", "pool")
    _check(name, slots)
    with db.atomic():
        pool, created = Pool.objects.get_or_create(
            pool=name, defaults={"slots": slots, "description": description, "include_deferred": include_deferred}
        )
        if not created:
            raise Conflict(f"Pool with name: `{name}` already exists")
        journal.record(actor, "post_pool", now, after=_facts(pool))
        db.notify()
    return pool


def change(actor: Actor, name: str, now: datetime, **fields: Any) -> Pool:
    """Sets any of ``pool`` (a new name), ``slots``, ``description``, ``include_deferred``.

    Raises Missing, Forbidden, Invalid, Conflict (name taken), Refused (the default pool is renamed).
    """
    permit.require(actor, "change", "pool")
    with db.atomic():
        pool = _locked(name)
        before = _facts(pool)
        renamed = fields.get("pool", name)
        if name == DEFAULT and renamed != DEFAULT:
            raise Refused("Default Pool cannot be renamed")
        _check(renamed, fields.get("slots", pool.slots))
        if renamed != name and Pool.objects.filter(pool=renamed).exists():
            raise Conflict(f"Pool with name: `{renamed}` already exists")
        for field, value in fields.items():
            setattr(pool, field, value)
        pool.save(update_fields=list(fields) or None)
        journal.record(actor, "patch_pool", now, before=before, after=_facts(pool))
        db.notify()
    return pool


def delete(actor: Actor, name: str, now: datetime) -> None:
    """Deletes a pool. Raises Missing, Forbidden, Refused (the default pool), Conflict (tasks hold its slots)."""
    permit.require(actor, "delete", "pool")
    if name == DEFAULT:
        raise Refused("Default Pool can't be deleted")
    with db.atomic():
        pool = _locked(name)
        active = TaskInstance.objects.filter(pool=name, state__in=["queued", "running", "restarting", "deferred"])
        if active.exists():
            raise Conflict(f"Tasks hold slots of the pool `{name}`. Delete it when they have ended.")
        journal.record(actor, "delete_pool", now, before=_facts(pool))
        pool.delete()


def _locked(name: str) -> Pool:
    pool = Pool.objects.filter(pool=name).select_for_update(no_key=True).first()
    if pool is None:
        raise Missing(f"The Pool with name: `{name}` was not found")
    return pool


def _check(name: str, slots: int) -> None:
    if not name.strip():
        raise Invalid("name", "A pool needs a name.")
    if slots < -1:
        raise Invalid("slots", "Slots are -1 (no limit) or a number from 0 up.")


def _facts(pool: Pool) -> dict[str, Any]:
    return {
        "name": pool.pool,
        "slots": pool.slots,
        "description": pool.description,
        "include_deferred": pool.include_deferred,
    }
