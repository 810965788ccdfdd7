"""Who is alive? And the same as JSON for load balancers."""

from __future__ import annotations

from datetime import timedelta

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe

from scheduler_app import access
from scheduler_app.conf import conf
from scheduler_app.models import db
from scheduler_app.queries import page_health, workers

from .page import Ask, page

SHOWN = 100


def lease() -> timedelta:
    return timedelta(seconds=conf().lease_seconds)


@page
def show(ask: Ask) -> HttpResponse:
    ask.need("view", "job")
    rows = access.jobs(ask.actor).order_by("-start_date")[:SHOWN]
    found = workers.workers(access.jobs(ask.actor), access.task_instances(ask.actor), ask.now)
    return ask.show(
        "jobs.html",
        {
            "section": "scheduler:jobs",
            "components": page_health.components(ask.now, lease()),
            "workers": found,
            "queues": workers.queues(found),
            "triggerers": workers.triggerers(access.jobs(ask.actor), ask.now),
            "jobs": [(job, workers.condition(job, ask.now)) for job in rows],
        },
    )


@require_safe
def healthz(request: HttpRequest) -> HttpResponse:
    """200 while the database answers and a scheduler is alive, else 503. Tells no more than that: it needs no login."""
    try:
        alive = page_health.scheduler_alive(db.clock(), lease())
    except (db.DatabaseError, db.InterfaceError):
        return JsonResponse({"database": "unhealthy", "scheduler": "unknown"}, status=503)
    return JsonResponse(
        {"database": "healthy", "scheduler": "healthy" if alive else "unhealthy"}, status=200 if alive else 503
    )
