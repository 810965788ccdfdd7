"""Who holds the slots?"""

from __future__ import annotations

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.queries import page_pools

from .page import Ask, page


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "pool")
    rows = page_pools.pools(access.task_instances(ask.actor))
    return ask.show("pools.html", {"section": "scheduler:pools", "pools": rows})
