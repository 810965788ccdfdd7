"""What does not parse?"""

from __future__ import annotations

from django.http import HttpResponse

from scheduler_app import access

from .page import Ask, page

SHOWN = 200


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "import_error")
    rows = access.import_errors(ask.actor).order_by("-timestamp", "-id")[:SHOWN]
    return ask.show("import_errors.html", {"section": "scheduler:import_errors", "errors": rows})
