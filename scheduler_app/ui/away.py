"""What the web answers while its database is away: 503 and when to try again, never the page of a bug."""

from __future__ import annotations

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import loader
from django.views.defaults import server_error

from scheduler_app.models import db

#: When a browser or a client may ask again.
RETRY_SECONDS = 5


def handler500(request: HttpRequest) -> HttpResponse:
    """Called by Django while it handles the exception."""
    error = sys.exc_info()[1]
    if error is None or not db.is_transient(error):
        return server_error(request)
    answer: HttpResponse
    if request.path.startswith(("/api/", "/auth/")):
        answer = JsonResponse({"detail": "The database does not answer; try again."}, status=503)
    else:
        # no context processors: they would ask the database who is logged in
        page = loader.get_template("503.html").render({"seconds": RETRY_SECONDS})
        answer = HttpResponse(page, status=503)
    answer["Retry-After"] = str(RETRY_SECONDS)
    return answer
