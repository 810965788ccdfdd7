"""Errors in Airflow's shape: ``{"detail": text}``, and for a request that does not validate ``{"detail": [{…}]}``."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db import DataError, IntegrityError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from scheduler_app.actions import errors as actions
from scheduler_app.models import db
from scheduler_app.secrets import SecretError
from scheduler_app.wire import EncodeError

log = logging.getLogger(__name__)


class Problem(Exception):
    """An answer other than 2xx with a sentence."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


class NotValid(Exception):
    """422: what is wrong with which part of the request, as ``{"type", "loc", "msg", "input"}`` items."""

    def __init__(self, items: Sequence[dict[str, Any]]) -> None:
        super().__init__("; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in items))
        self.items = list(items)


def item(kind: str, loc: Sequence[str | int], msg: str, value: Any = None) -> dict[str, Any]:
    """One entry of a 422."""
    return {"type": kind, "loc": list(loc), "msg": msg, "input": value}


def not_valid(kind: str, loc: Sequence[str | int], msg: str, value: Any = None) -> NotValid:
    return NotValid([item(kind, loc, msg, value)])


_STATUS: dict[type[Exception], int] = {
    actions.Missing: 404,
    actions.Forbidden: 403,
    actions.Conflict: 409,
    actions.Refused: 400,
    Http404: 404,
    PermissionDenied: 403,
}


def status_of(error: Exception) -> int:
    """The status that an error of an action is answered with."""
    return next((status for kind, status in _STATUS.items() if isinstance(error, kind)), 422)


def handle(error: Exception, context: dict[str, Any]) -> Response | None:
    """DRF's exception handler of our endpoints: what it does not know is a bug, and a 500."""
    if isinstance(error, Problem):
        return Response({"detail": error.detail}, status=error.status)
    if isinstance(error, NotValid):
        return Response({"detail": error.items}, status=422)
    if isinstance(error, actions.Invalid):
        return Response({"detail": [item("value_error", ["body", error.field], str(error))]}, status=422)
    if isinstance(error, EncodeError):
        return Response({"detail": [item("value_error", ["body"], str(error))]}, status=422)
    for kind, status in _STATUS.items():
        if isinstance(error, kind):
            return Response({"detail": str(error) or _DEFAULT[status]}, status=status)
    if isinstance(error, exceptions.APIException):
        return _framework(error)
    return _stored(error)


def _framework(error: exceptions.APIException) -> Response:
    if isinstance(error, exceptions.ParseError):
        return Response({"detail": [item("json_invalid", ["body"], "JSON decode error")]}, status=422)
    headers = {}
    if getattr(error, "auth_header", None):
        headers["WWW-Authenticate"] = error.auth_header
    if getattr(error, "wait", None):
        headers["Retry-After"] = str(int(error.wait))
    if isinstance(error, exceptions.UnsupportedMediaType):
        return Response({"detail": [item("model_attributes_type", ["body"], str(error.detail))]}, status=422)
    return Response({"detail": str(error.detail)}, status=error.status_code, headers=headers)


def _stored(error: Exception) -> Response | None:
    """What the database refused: a value no column takes, a duplicate made at the same moment; or that it is away."""
    if isinstance(error, DataError):
        return Response({"detail": "A value of the request is out of range."}, status=400)
    if isinstance(error, IntegrityError):
        log.warning("integrity error answered as a conflict", exc_info=error)
        return Response({"detail": "The object changed or exists already; look at it and try again."}, status=409)
    if isinstance(error, SecretError):
        return Response({"detail": str(error)}, status=503)
    if db.is_transient(error):
        log.error("the database did not answer", exc_info=error)
        return Response({"detail": "The database does not answer; try again."}, status=503, headers=_AGAIN)
    return None


#: When a client may ask again.
_AGAIN = {"Retry-After": "5"}
_DEFAULT = {404: "Not Found", 403: "Forbidden"}
