"""Import errors in the admin."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.urls import reverse

from scheduler_app.models import ParseError

from .base import Derived


@admin.register(ParseError)
class ParseErrorAdmin(Derived):
    list_display = ("filename", "bundle_name", "timestamp")
    list_filter = ("bundle_name",)
    search_fields = ("filename",)
    date_hierarchy = "timestamp"
    ordering = ("-timestamp",)

    def dashboard_url(self, row: Any) -> str:
        return f"{reverse('scheduler:import_errors')}#{row.filename}"
