"""Backfills: which there are, how far one has come slot by slot, and what may be done to it."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler_app import access
from scheduler_app.actions import backfills
from scheduler_app.actions.errors import Invalid
from scheduler_app.models import Backfill
from scheduler_app.queries import page_backfills, page_why

from .jobs import lease
from .page import Ask, back, deed, page, page_number

#: What became of a slot → its word and the shape of a state that stands for it.
STANDINGS: Final = {
    "success": (gettext_lazy("Success"), "success"),
    "failed": (gettext_lazy("Failed"), "failed"),
    "running": (gettext_lazy("Running"), "running"),
    "queued": (gettext_lazy("Queued"), "queued"),
    "waiting": (gettext_lazy("Waiting"), "none"),
    "left": (gettext_lazy("Left alone"), "skipped"),
    "cancelled": (gettext_lazy("Cancelled"), "removed"),
}


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "run")
    return ask.show("backfills.html", {"section": "scheduler:backfills", **_listed(ask, access.backfills(ask.actor))})


@page
def of_dag(ask: Ask, dag_id: str) -> HttpResponse:
    ask.need("view", "run")
    dag = ask.dag(dag_id)
    rows = access.backfills(ask.actor).filter(dag=dag)
    context = {"section": "scheduler:dags", "tab": "backfills", "dag": dag, **_listed(ask, rows)}
    return ask.show("dag_backfills.html", context)


@page
def one(ask: Ask, backfill_id: int) -> HttpResponse:
    ask.need("view", "run")
    pulse = page_backfills.pulse(access.backfills(ask.actor), backfill_id)
    row = access.backfills(ask.actor).select_related("dag").filter(pk=backfill_id).first()
    if row is None:
        raise Http404(_("There is no backfill %(id)s, or you may not see it.") % {"id": backfill_id})
    shown = ask.request.GET.get("show", "")
    shown = shown if shown in STANDINGS else ""
    number = page_number(ask.request)
    progress = page_backfills.progress_of(row)
    matching = progress.counts.get(shown, 0) if shown else progress.total
    waits = page_backfills.next_run(row) if row.completed_at is None else None
    context = {
        "section": "scheduler:backfills",
        "backfill": row,
        "dag": row.dag,
        "progress": progress,
        "standings": [(name, *STANDINGS[name], count) for name, count in progress.pieces],
        "words": STANDINGS,
        "shown": shown,
        "slots": page_backfills.slots(row, shown, number),
        "page": number,
        "pages": max(1, -(-matching // page_backfills.SLOTS)),
        "why": page_why.why_run(waits, ask.now, lease()) if waits is not None else None,
        "waits": waits,
        "token": pulse[0] if pulse else "",
    }
    return ask.show("backfill.html", context)


@deed
def change(ask: Ask, backfill_id: int) -> HttpResponse:
    """Pause, go on, or cancel."""
    reason = ask.request.POST.get("why", "").strip() or None
    do = ask.request.POST.get("do", "")
    if do in ("pause", "resume"):
        backfills.set_paused(ask.actor, backfill_id, do == "pause", ask.now, reason=reason)
        text = _("Backfill %(id)s is paused.") if do == "pause" else _("Backfill %(id)s goes on.")
    elif do == "cancel":
        backfills.cancel(ask.actor, backfill_id, ask.now, reason=reason)
        text = _("Backfill %(id)s was cancelled.")
    else:
        raise Invalid("do", _("“do” must be pause, resume or cancel."))
    messages.success(ask.request, text % {"id": backfill_id})
    return back(ask, reverse("scheduler:backfill", args=[backfill_id]))


def _listed(ask: Ask, rows: QuerySet[Backfill]) -> dict[str, object]:
    number = page_number(ask.request)
    found, more = page_backfills.backfills(rows, number)
    return {"rows": found, "page": number, "more": more, "words": STANDINGS}
