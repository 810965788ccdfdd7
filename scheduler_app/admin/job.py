"""Jobs in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import reverse

from scheduler_app.models import Job

from .base import Derived


@admin.register(Job)
class JobAdmin(Derived):
    list_display = ("id", "job_type", "state", "hostname", "pid", "start_date", "latest_heartbeat", "end_date")
    list_filter = ("job_type", "state")
    search_fields = ("hostname__istartswith",)
    date_hierarchy = "start_date"
    ordering = ("-start_date",)

    def dashboard_url(self, row: Any) -> str:
        return reverse("scheduler:jobs")
