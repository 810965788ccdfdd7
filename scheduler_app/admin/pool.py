"""Pools in the admin."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.urls import reverse

from scheduler_app.access import Actor
from scheduler_app.actions import pools
from scheduler_app.models import Pool

from .managed import Managed


@admin.register(Pool)
class PoolAdmin(Managed):
    list_display = ("pool", "slots", "include_deferred", "description")
    search_fields = ("pool__istartswith",)
    ordering = ("pool",)

    def dashboard_url(self, row: Any) -> str:
        return f"{reverse('scheduler:pools')}#{row.pool}"

    def create(self, actor: Actor, now: datetime, values: dict[str, Any]) -> Pool:
        name, slots = values.pop("pool"), values.pop("slots")
        return pools.create(actor, name, slots, now, **values)

    def change(self, actor: Actor, now: datetime, before: Pool, values: dict[str, Any]) -> Pool:
        return pools.change(actor, before.pool, now, **values)

    def remove(self, actor: Actor, now: datetime, row: Pool) -> None:
        pools.delete(actor, row.pool, now)
