"""Keyed limits in the admin."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib import admin
from django.urls import reverse

from scheduler_app.access import Actor
from scheduler_app.actions import limits
from scheduler_app.models import Limit

from .managed import Managed


@admin.register(Limit)
class LimitAdmin(Managed):
    list_display = ("name", "amount", "per_seconds", "declared_by", "description")
    search_fields = ("name__istartswith",)
    ordering = ("name",)
    fields = ("name", "amount", "per_seconds", "description", "declared_by")

    def get_readonly_fields(self, request: Any, obj: Limit | None = None) -> tuple[str, ...]:
        return ("declared_by",) if obj is None else ("name", "declared_by")

    def dashboard_url(self, row: Any) -> str:
        return f"{reverse('scheduler:pools')}#limit-{row.name}"

    def create(self, actor: Actor, now: datetime, values: dict[str, Any]) -> Limit:
        return limits.create(actor, values.pop("name"), values.pop("amount"), now, **values)

    def change(self, actor: Actor, now: datetime, before: Limit, values: dict[str, Any]) -> Limit:
        return limits.change(actor, before.name, now, **values)

    def remove(self, actor: Actor, now: datetime, row: Limit) -> None:
        limits.delete(actor, row.name, now)
