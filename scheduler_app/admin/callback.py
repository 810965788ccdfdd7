"""Callbacks in the admin: what is still to be told to whom, and what went wrong."""

from __future__ import annotations

from django.contrib import admin

from scheduler_app.models import Callback

from .base import Derived


@admin.register(Callback)
class CallbackAdmin(Derived):
    list_display = ("id", "kind", "dag_id", "state", "attempts", "next_at", "finished_at")
    list_filter = ("state", "kind")
    search_fields = ("dedupe_key__exact",)
    ordering = ("-id",)
