"""Variables in the admin: a value can be written, never read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from scheduler_app.access import Actor
from scheduler_app.actions import variables
from scheduler_app.models import Variable

from .managed import Managed


class VariableForm(forms.ModelForm):
    value = forms.CharField(
        label=_("Value"),
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "off", "spellcheck": "false"}),
        required=False,
        help_text=_("The stored value is never shown. Empty keeps it."),
    )

    class Meta:
        model = Variable
        fields = ("key", "value", "description")


@admin.register(Variable)
class VariableAdmin(Managed):
    form = VariableForm
    list_display = ("key", "description")
    search_fields = ("key__istartswith",)
    ordering = ("key",)

    def get_readonly_fields(self, request: Any, obj: Any = None) -> tuple[str, ...]:
        return ("key",) if obj is not None else ()

    def create(self, actor: Actor, now: datetime, values: dict[str, Any]) -> Variable:
        return variables.create(actor, values["key"], values["value"], now, description=values["description"])

    def change(self, actor: Actor, now: datetime, before: Variable, values: dict[str, Any]) -> Variable:
        kept = {name: value for name, value in values.items() if name != "value" or value}
        return variables.change(actor, before.key, now, **kept)

    def remove(self, actor: Actor, now: datetime, row: Variable) -> None:
        variables.delete(actor, row.key, now)
