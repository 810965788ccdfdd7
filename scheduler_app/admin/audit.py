"""The audit in the admin: read, never changed."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from scheduler_app.models import Audit

from .base import Derived, one_of


@admin.register(Audit)
class AuditAdmin(Derived):
    list_display = ("when", "owner", "event", "dag_id", "run_id", "task_id", "reason")
    list_filter = (one_of("actor_kind", _("kind of actor"), "person", "task", "backfill", "command"),)
    search_fields = ("dag_id__exact",)
    search_help_text = _("The DAG's id")
    date_hierarchy = "when"
    ordering = ("-when", "-id")

    def dashboard_url(self, row: Any) -> str:
        return reverse("scheduler:dag_audit", args=[row.dag_id]) if row.dag_id else reverse("scheduler:audit")
