"""Connections in the admin: password and extra can be written, never read."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from scheduler_app.access import Actor
from scheduler_app.actions import connections
from scheduler_app.models import Connection

from .managed import Managed

KEPT = _("What is stored is never shown. Empty keeps it.")


class ConnectionForm(forms.ModelForm):
    password = forms.CharField(
        label=_("Password"),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        required=False,
        help_text=KEPT,
    )
    extra = forms.JSONField(
        label=_("Extra"),
        widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"}),
        required=False,
        help_text=KEPT,
    )

    class Meta:
        model = Connection
        fields = ("connection_id", "conn_type", "host", "port", "schema", "login", "password", "extra", "description")
        widgets = {name: forms.TextInput(attrs={"class": "vTextField"}) for name in ("host", "schema", "login")}


@admin.register(Connection)
class ConnectionAdmin(Managed):
    form = ConnectionForm
    list_display = ("connection_id", "conn_type", "host", "port", "schema", "description")
    list_filter = ("conn_type",)
    search_fields = ("connection_id__istartswith",)
    ordering = ("connection_id",)

    def get_readonly_fields(self, request: Any, obj: Any = None) -> tuple[str, ...]:
        return ("connection_id",) if obj is not None else ()

    def create(self, actor: Actor, now: datetime, values: dict[str, Any]) -> Connection:
        return connections.create(actor, values.pop("connection_id"), now, **_secrets(values))

    def change(self, actor: Actor, now: datetime, before: Connection, values: dict[str, Any]) -> Connection:
        return connections.change(actor, before.connection_id, now, **_secrets(values))

    def remove(self, actor: Actor, now: datetime, row: Connection) -> None:
        connections.delete(actor, row.connection_id, now)


def _secrets(values: dict[str, Any]) -> dict[str, Any]:
    """The extra as the JSON text that it is stored as; empty secrets are left out, so that they stay."""
    kept = {name: value for name, value in values.items() if name not in connections.SECRET or value}
    if "extra" in kept:
        kept["extra"] = json.dumps(kept["extra"])
    return kept
