"""``/metrics`` for Prometheus: the numbers of every process of this machine, for a token or for a person who may."""

from __future__ import annotations

import secrets

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from django_prometheus.exports import ExportToDjangoView

import scheduler_app.metrics  # noqa: F401  (declares them: a process that counted nothing shows zeros)
from scheduler_app import access
from scheduler_app.conf import conf


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """200 for the bearer token of ``SCHEDULER_METRICS_TOKEN``, or for a session that may see jobs; else 401 or 403."""
    token = conf().metrics_token
    given = request.headers.get("Authorization", "").removeprefix("Bearer ")
    if token and secrets.compare_digest(given.encode(), token.encode()):
        return ExportToDjangoView(request)
    actor = access.of_user(request.user)
    if access.can(actor, "view", "job"):
        return ExportToDjangoView(request)
    if request.user.is_authenticated:
        return HttpResponse("You may not see jobs, and so no metrics. Ask an administrator.\n", "text/plain", 403)
    answer = HttpResponse("Log in, or send the token of SCHEDULER_METRICS_TOKEN.\n", "text/plain", 401)
    answer["WWW-Authenticate"] = 'Bearer realm="metrics"'
    return answer
