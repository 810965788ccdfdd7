"""Pause or resume many DAGs: those that were ticked, or all that match the list's filter."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduler_app import access
from scheduler_app.actions import pause
from scheduler_app.actions.errors import Conflict, Invalid
from scheduler_app.models import DagModel
from scheduler_app.queries import page_dags

from .batches import ASK_FROM
from .page import Ask, back, deed


@deed
def set_paused(ask: Ask) -> HttpResponse:
    asked = ask.request.POST
    wanted = asked.get("bulk", "")
    if wanted not in ("pause", "resume"):
        raise Invalid("bulk", _("“bulk” must be pause or resume."))
    dag_ids = sorted(set(chosen(ask, asked)))
    if not dag_ids:
        raise Invalid("dag", _("Tick at least one DAG first."))
    if len(dag_ids) > ASK_FROM and asked.get("number", "").strip() != str(len(dag_ids)):
        text = _("That is about %(n)s DAGs. Type %(n)s into the field beside the button to do it.")
        raise Invalid("number", text % {"n": len(dag_ids)})
    changed = len(pause.set_paused_many(ask.actor, dag_ids, wanted == "pause", ask.now))
    text = (
        ngettext("%(n)s DAG was paused.", "%(n)s DAGs were paused.", changed)
        if wanted == "pause"
        else ngettext("%(n)s DAG was resumed.", "%(n)s DAGs were resumed.", changed)
    ) % {"n": changed}
    same = len(dag_ids) - changed
    if same:
        text += " " + ngettext(
            "%(n)s was so already, or is not yours to change.",
            "%(n)s were so already, or are not yours to change.",
            same,
        ) % {"n": same}
    messages.success(ask.request, text)
    return back(ask, reverse("scheduler:dags"))


def chosen(ask: Ask, asked: Any) -> list[str]:
    """The ticked DAGs, or those that the filter finds now. Raises Conflict when these are not as many as were shown."""
    if not asked.get("all"):
        return list(asked.getlist("dag"))
    visible: QuerySet[DagModel] = access.dags(ask.actor)
    words = page_dags.words_of(asked.get("q", ""))
    found = page_dags.matching_ids(visible, words, chip=asked.get("show") or words.chip or "all", now=ask.now)
    if str(len(found)) != asked.get("n"):
        text = _("%(was)s DAGs matched when you looked, %(now)s do now: nothing was changed. Look again.")
        raise Conflict(text % {"was": asked.get("n", "?"), "now": len(found)})
    return found
