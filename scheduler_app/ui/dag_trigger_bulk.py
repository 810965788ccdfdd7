"""Trigger many DAGs: the ticked ones are shown first, with what keeps runs from starting, then done part by part."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler_app import access
from scheduler_app.actions import pause, trigger
from scheduler_app.actions.errors import Invalid
from scheduler_app.models import DagModel

from . import batches, dag_bulk
from .page import Ask, deed, page

#: DAGs that the preview names.
NAMED: Final = 200


@login_required
def form(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _get(request)
    return (_act if "ids" in request.POST else _ticked)(request)


@page
def _get(ask: Ask) -> HttpResponse:
    return _preview(ask, ask.request.GET)


@deed
def _ticked(ask: Ask) -> HttpResponse:
    """From the list, whose form is posted: so that no address carries its token."""
    return _preview(ask, ask.request.POST)


def _preview(ask: Ask, asked: Any) -> HttpResponse:
    ask.need("add", "run")
    wanted = sorted(set(dag_bulk.chosen(ask, asked)))
    if not wanted:
        raise Invalid("dag", _("Tick at least one DAG first."))
    more, wanted = len(wanted) > batches.MOST, wanted[: batches.MOST]
    found = list(access.dags(ask.actor, "change").filter(pk__in=wanted).order_by("pk"))
    shown, unnamed = batches.named(found, NAMED)
    context = {
        "section": "scheduler:dags",
        "rows": shown,
        "n": len(found),
        "unnamed": unnamed,
        "more": more,
        "paused": sum(dag.is_paused for dag in found),
        "ids": ",".join(dag.dag_id for dag in found),
        "type_number": len(found) > batches.ASK_FROM,
        "back": asked.get("next", ""),
    }
    return ask.show("dag_trigger_bulk.html", context)


@deed
def _act(ask: Ask) -> HttpResponse:
    ask.need("add", "run")
    asked = ask.request.POST
    state = batches.read(asked, _dags)
    rows = access.dags(ask.actor).filter(pk__in=batches.next_part(state))
    batches.act(state, {dag.dag_id: dag for dag in rows}, lambda dag: _trigger(ask, dag, asked), lambda dag: dag.dag_id)
    words = batches.Words(_("Trigger"), _dags)
    fields = {name: asked.get(name, "") for name in ("unpause", "note")}
    return batches.answer(ask, state, words, fields, reverse("scheduler:dags"))


def _trigger(ask: Ask, dag: DagModel, asked: Any) -> None:
    trigger.trigger_run(ask.actor, dag.dag_id, ask.now, note=asked.get("note", "").strip() or None)
    if asked.get("unpause") and dag.is_paused:
        pause.set_paused(ask.actor, dag.dag_id, False, ask.now)


def _dags(n: int) -> str:
    return ngettext("%(n)s DAG", "%(n)s DAGs", n) % {"n": n}
