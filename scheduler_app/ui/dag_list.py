"""Which DAG? The list, its filter box and its chips."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduler_app import access
from scheduler_app.conf import conf
from scheduler_app.queries import page_dags, page_first

from . import batches
from .page import Ask, page, page_number

PAGE_SIZE = 50

#: chip → label and the state whose shape it carries
CHIPS = (
    ("all", gettext_lazy("All"), None),
    ("failed", gettext_lazy("Failed"), "failed"),
    ("running", gettext_lazy("Running"), "running"),
    ("late", gettext_lazy("Late"), "up_for_retry"),
    ("active", gettext_lazy("Active"), None),
    ("paused", gettext_lazy("Paused"), None),
)


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "dag")
    # before anything is read: a change that comes in between is then found by the first poll
    token = page_dags.pulse(access.dags(ask.actor))
    query = ask.request.GET.get("q", "")
    words = page_dags.words_of(query)
    chip = ask.request.GET.get("show") or words.chip or "all"
    order = ask.request.GET.get("order", "dag_id")
    result = page_dags.dag_page(
        access.dags(ask.actor),
        words,
        chip=chip,
        page=page_number(ask.request),
        size=PAGE_SIZE,
        now=ask.now,
        order=order,
    )
    context: dict[str, Any] = {
        "section": "scheduler:dags",
        "result": result,
        "token": token,
        "q": query,
        "chip": chip,
        "order": order,
        "matching": result.counts.get(chip, result.counts["all"]),
        "ask_from": batches.ASK_FROM,
        "chips": [(name, label, shape, result.counts[name]) for name, label, shape in CHIPS],
    }
    if not result.rows:
        context |= _why_empty(ask.now, query, chip, result)
    return ask.show("dags.html", context)


def _why_empty(now: datetime, query: str, chip: str, result: page_dags.DagPage) -> dict[str, Any]:
    if query or result.counts["all"]:
        labels = {name: str(label) for name, label, _shape in CHIPS}
        asked = [f"“{query}”"] if query else []
        asked += [_("the chip “%(chip)s”") % {"chip": labels.get(chip, chip)}] if chip != "all" else []
        return {"filtered": True, "filter_words": _(" and ").join(asked) or _("this page")}
    return {"first": page_first.first_visit(now, timedelta(seconds=conf().lease_seconds), str(conf().dags_folder))}
