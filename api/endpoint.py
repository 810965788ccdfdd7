"""The base of every endpoint: who asks, what they may, the moment of the request, and errors in Airflow's shape."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

from django.conf import settings
from django.core import signals
from django.http import HttpResponse
from rest_framework import exceptions
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from scheduler_app import access
from scheduler_app.access import Actor
from scheduler_app.models import db

from . import auth, errors

log = logging.getLogger(__name__)

#: HTTP method → the verb that ``access`` is asked about, unless an endpoint says otherwise.
VERB_OF = {"GET": "view", "HEAD": "view", "POST": "add", "PATCH": "change", "PUT": "change", "DELETE": "delete"}


class LenientJSONParser(JSONParser):
    """Takes any content type as JSON, as Airflow's server does for a body without a header."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            found = super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise _too_deep() from error
        if _deeper_than(found, DEEPEST):
            raise _too_deep()
        return found


#: Levels of a body. Values that are stored may have no more (``wire``), and checks that recurse stay far from the end.
DEEPEST = 150


def _too_deep() -> errors.NotValid:
    return errors.not_valid("json_invalid", ["body"], f"Body is nested deeper than {DEEPEST} levels")


def _deeper_than(value: Any, levels: int) -> bool:
    """Level by level, as what it looks for would exhaust a recursion."""
    level = [value]
    for _ in range(levels):
        level = [
            below
            for item in level
            if isinstance(item, dict | list)
            for below in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return True


class Endpoint(APIView):
    """One path. ``kind`` is what it is about; ``needs`` overrides the permission of single methods."""

    authentication_classes = [auth.Bearer, auth.Basic, auth.Session]
    permission_classes: ClassVar[list[Any]] = []
    throttle_classes: ClassVar[list[Any]] = []
    parser_classes = [LenientJSONParser]
    renderer_classes = [JSONRenderer]
    http_method_names = ["get", "post", "put", "patch", "delete", "head"]

    kind: ClassVar[str] = ""
    #: method → (verb, kind); None is open to everybody
    needs: ClassVar[dict[str, tuple[str, str] | None]] = {}
    actor: Actor
    #: how often this request may still be done again after a transient error
    _again = 2

    @cached_property
    def now(self) -> datetime:
        """The moment of this request by the database's clock (I7), read when it is first needed."""
        return db.clock()

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Any]:
        return errors.handle

    def perform_content_negotiation(self, request: Request, force: bool = False) -> tuple[Any, str]:
        """JSON always; an endpoint that can answer otherwise looks at ``Accept`` itself."""
        renderer = self.get_renderers()[0]
        return renderer, renderer.media_type

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.method not in self.allowed_methods:
            raise exceptions.MethodNotAllowed(str(request.method))
        self._refuse_nul(request, kwargs)
        self._refuse_large(request)
        method = "GET" if request.method == "HEAD" else str(request.method)
        need = self.needs.get(method, (VERB_OF[method], self.kind))
        if need is None:
            return
        if not request.user or not request.user.is_authenticated:
            raise exceptions.NotAuthenticated("Not authenticated")
        self.actor = access.of_user(request.user)
        if not access.can(self.actor, *need):
            raise errors.Problem(403, "Forbidden")

    def handle_exception(self, exc: Exception) -> Any:
        """An action that lost a deadlock or its connection is done again: its transaction left nothing behind (I9)."""
        if self._again > 0 and db.is_transient(exc) and not db.connection().in_atomic_block:
            self._again -= 1
            log.warning("%s %s is tried again", self.request.method, self.request.path, exc_info=exc)
            db.connection().close_if_unusable_or_obsolete()
            try:
                # who asks, and whether they may, is asked anew as well: it may be that which failed
                self.initial(self.request, *self.args, **self.kwargs)
                return getattr(self, str(self.request.method).lower())(self.request, *self.args, **self.kwargs)
            except Exception as error:
                return self.handle_exception(error)
        try:
            return super().handle_exception(exc)
        except Exception:
            # A bug. Whoever listens (the log, an error tracker) is told as Django tells it; the client reads JSON.
            log.exception("%s %s failed", self.request.method, self.request.path)
            signals.got_request_exception.send(sender=type(self), request=self.request._request)
            return Response({"detail": "Internal Server Error. The server's log has the details."}, status=500)

    def _refuse_large(self, request: Request) -> None:
        """Django's limit for what is kept in memory, which reading a stream of JSON passes by."""
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        length = request.META.get("CONTENT_LENGTH") or "0"
        if most is not None and length.isdigit() and int(length) > most:
            raise errors.Problem(
                413, f"The body has {length} bytes; DATA_UPLOAD_MAX_MEMORY_SIZE allows {most}. Send it in parts."
            )

    def _refuse_nul(self, request: Request, kwargs: dict[str, Any]) -> None:
        """PostgreSQL stores no NUL character: such an id or parameter can match nothing."""
        for name, value in kwargs.items():
            if "\x00" in str(value):
                raise errors.not_valid("value_error", ["path", name], "Value holds a NUL character", None)
        for name, values in request.query_params.lists():
            if any("\x00" in value for value in values):
                raise errors.not_valid("value_error", ["query", name], "Value holds a NUL character", None)


def null(status: int = 200) -> HttpResponse:
    """The JSON value null, which DRF would leave out."""
    return HttpResponse("null", status=status, content_type="application/json")


def asks_for(request: Request, media: str) -> bool:
    """Whether ``Accept`` asks for this media type and not for JSON before it."""
    before, found, _ = request.META.get("HTTP_ACCEPT", "").partition(media)
    return bool(found) and "application/json" not in before
