"""The pause switch: pauses or unpauses one DAG, and offers to undo it."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from scheduler_app.actions import pause
from scheduler_app.actions.errors import Invalid

from .page import Ask, back, deed


@deed
def set_paused(ask: Ask, dag_id: str) -> HttpResponse:
    wanted = ask.request.POST.get("paused")
    if wanted not in ("yes", "no"):
        raise Invalid("paused", _("“paused” must be yes or no."))
    dag = pause.set_paused(ask.actor, dag_id, wanted == "yes", ask.now)
    message = (
        _("%(dag)s is paused. What runs goes on to its end; nothing new starts.")
        if dag.is_paused
        else _("%(dag)s is active.")
    )
    message %= {"dag": dag_id}
    if getattr(ask.request, "htmx", False):
        return ask.show("part/pause_answer.html", {"dag_id": dag_id, "is_paused": dag.is_paused, "message": message})
    messages.success(ask.request, message)
    return back(ask, reverse("scheduler:dags"))
