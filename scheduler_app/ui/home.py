"""Is anything wrong?"""

from __future__ import annotations

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.queries import page_health, page_home

from .jobs import lease
from .page import Ask, page


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "dag")
    actor = ask.actor
    return ask.show(
        "home.html",
        {
            "section": "scheduler:home",
            "components": page_health.components(ask.now, lease()),
            "home": page_home.home(
                access.dags(actor),
                access.runs(actor),
                access.task_instances(actor),
                access.callbacks(actor),
                access.deadlines(actor),
                ask.now,
            ),
            "many": page_home.COUNTED,
        },
    )
