"""Hold and release: one run, one task instance, or a DAG's new runs. Why is asked for; until when may be."""

from __future__ import annotations

from datetime import datetime

from django.contrib import messages
from django.http import HttpResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _

from scheduler_app.actions import hold
from scheduler_app.actions.errors import Invalid

from .page import Ask, back, deed


@deed
def run(ask: Ask, dag_id: str, run_id: str) -> HttpResponse:
    if _releases(ask):
        hold.release_run(ask.actor, dag_id, run_id, ask.now, why=_why(ask))
        messages.success(ask.request, _("The run goes on."))
    else:
        hold.hold_run(ask.actor, dag_id, run_id, ask.now, why=_why(ask), until=_until(ask))
        messages.success(ask.request, _("The run is held. What runs now goes on to its end."))
    return back(ask, reverse("scheduler:run", args=[dag_id, run_id]))


@deed
def task(ask: Ask, dag_id: str, run_id: str, task_id: str) -> HttpResponse:
    try:
        map_index = int(ask.request.POST.get("map_index", "-1"))
    except ValueError as error:
        raise Invalid("map_index", _("The map index must be a number.")) from error
    if _releases(ask):
        hold.release_task(ask.actor, dag_id, run_id, task_id, ask.now, map_index=map_index, why=_why(ask))
        messages.success(ask.request, _("The task goes on."))
    else:
        hold.hold_task(
            ask.actor, dag_id, run_id, task_id, ask.now, map_index=map_index, why=_why(ask), until=_until(ask)
        )
        messages.success(ask.request, _("The task is held: it is not started until it is released."))
    return back(ask, reverse("scheduler:task", args=[dag_id, run_id, task_id]))


@deed
def new_runs(ask: Ask, dag_id: str) -> HttpResponse:
    if _releases(ask):
        hold.release_new_runs(ask.actor, dag_id, ask.now, why=_why(ask))
        messages.success(ask.request, _("The schedule goes on."))
    else:
        hold.hold_new_runs(ask.actor, dag_id, ask.now, why=_why(ask), until=_until(ask))
        messages.success(ask.request, _("No new scheduled runs are made until the hold ends."))
    return back(ask, reverse("scheduler:dag", args=[dag_id]))


def _releases(ask: Ask) -> bool:
    verb = ask.request.POST.get("do")
    if verb not in ("hold", "release"):
        raise Invalid("do", _("“do” must be hold or release."))
    return verb == "release"


def _why(ask: Ask) -> str:
    return ask.request.POST.get("why", "").strip()


def _until(ask: Ask) -> datetime | None:
    """The moment of a ``datetime-local`` field, in the reader's zone."""
    text = ask.request.POST.get("until", "").strip()
    if not text:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise Invalid("until", _("“%(text)s” is no date and time. Write it as 2030-01-31 12:00.") % {"text": text})
    return moment if moment.tzinfo else timezone.make_aware(moment)
