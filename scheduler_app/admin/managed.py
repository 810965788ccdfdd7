"""Rows that people make, change and delete in the admin, each through its action."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from scheduler_app.access import Actor
from scheduler_app.actions.errors import ActionError

from .base import SchedulerAdmin, acting, for_each


class Managed(SchedulerAdmin):
    """Saves and deletes through actions; what one refuses is a message on the form, and nothing was changed."""

    def create(self, actor: Actor, now: datetime, values: dict[str, Any]) -> Model:
        raise NotImplementedError

    def change(self, actor: Actor, now: datetime, before: Any, values: dict[str, Any]) -> Model:
        """``before`` is the row as it is stored, ``values`` what the form changed."""
        raise NotImplementedError

    def remove(self, actor: Actor, now: datetime, row: Any) -> None:
        raise NotImplementedError

    def save_model(self, request: HttpRequest, obj: Any, form: forms.ModelForm, change: bool) -> None:
        actor, now = acting(request)
        if change:
            values = {name: form.cleaned_data[name] for name in form.changed_data}
            before = type(obj)._default_manager.get(pk=obj.pk)
            self.change(actor, now, before, values)
        else:
            obj.pk = self.create(actor, now, dict(form.cleaned_data)).pk

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        actor, now = acting(request)
        self.remove(actor, now, obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for_each(request, queryset, lambda row, actor, now: self.remove(actor, now, row))

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _or_message(request, lambda: super(Managed, self).changeform_view(request, *args, **kwargs))

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return _or_message(request, lambda: super(Managed, self).delete_view(request, *args, **kwargs))


def _or_message(request: HttpRequest, view: Callable[[], HttpResponse]) -> HttpResponse:
    """The view's answer; a refused action leads back to the form, which says why."""
    try:
        return view()
    except ActionError as error:
        messages.error(request, str(error))
        return HttpResponseRedirect(request.get_full_path())
