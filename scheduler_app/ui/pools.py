"""Who holds the slots, and what is taken of keyed limits?"""

from __future__ import annotations

from django.http import HttpResponse

from scheduler_app import access
from scheduler_app.queries import page_limits, page_pools

from .page import Ask, page


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "pool")
    visible = access.task_instances(ask.actor)
    limits = page_limits.limits(visible, access.dags(ask.actor), ask.now) if ask.can("view", "limit") else []
    return ask.show("pools.html", {"section": "scheduler:pools", "pools": page_pools.pools(visible), "limits": limits})
