"""Failed logins, counted by name and address: after too many the next ones wait, whichever door they knock at."""

from __future__ import annotations

import hashlib
from typing import Any

from django.core.cache import cache

from scheduler_app.conf import conf

TOO_MANY = "Too many failed logins. Wait some minutes and try again."


def is_shut(request: Any, username: str) -> bool:
    """Whether this name has failed too often from this address."""
    return bool(cache.get(_counter(request, username), 0) >= conf().login_failures)


def failed(request: Any, username: str) -> None:
    counter, seconds = _counter(request, username), conf().login_failure_seconds
    cache.add(counter, 0, seconds)
    try:
        cache.incr(counter)
    except ValueError:  # it expired in between
        cache.set(counter, 1, seconds)


def succeeded(request: Any, username: str) -> None:
    cache.delete(_counter(request, username))


def address(request: Any) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def _counter(request: Any, username: str) -> str:
    told = f"{username}|{address(request)}".encode("utf-8", "surrogatepass")
    return f"login-failures:{hashlib.sha256(told).hexdigest()}"
