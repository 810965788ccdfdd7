"""Callbacks in the admin: what is still to be told to whom, and what went wrong."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from scheduler_app.models import Callback

from .base import Derived, one_of


@admin.register(Callback)
class CallbackAdmin(Derived):
    list_display = ("id", "kind", "dag_id", "state", "attempts", "next_at", "finished_at")
    list_filter = (one_of("state", _("state"), "pending", "running", "success", "failed"),)
    search_fields = ("dedupe_key__exact",)
    ordering = ("-id",)
