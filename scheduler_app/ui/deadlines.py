"""What was not done in time, and what is due next: deadlines of runs, and SLAs of tasks."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse
from django.utils.translation import gettext_lazy

from scheduler_app import access
from scheduler_app.queries import page_deadlines

from .page import Ask, page, page_number

KINDS: Final = (("run", gettext_lazy("Deadlines of runs")), ("sla", gettext_lazy("SLAs of tasks")))


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "run")
    visible = access.deadlines(ask.actor)
    kind = ask.request.GET.get("kind", "")
    kind = kind if kind in dict(KINDS) else ""
    number = page_number(ask.request)
    rows, more = page_deadlines.missed(visible, kind, number)
    context = {
        "section": "scheduler:failures",
        "rows": rows,
        "more": more,
        "page": number,
        "kind": kind,
        "kinds": KINDS,
        "coming": page_deadlines.coming(visible) if number == 1 else [],
    }
    return ask.show("deadlines.html", context)
