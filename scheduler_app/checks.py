"""System checks: a setting that cannot work is named when a command starts, not when it hurts."""

from __future__ import annotations

import dataclasses
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured
from fsspec import get_filesystem_class
from fsspec.core import split_protocol

from .conf import Conf, conf

#: settings with few values: name, values, code of the check
_CHOICES = (
    ("max_active_tasks_per", ("run", "dag"), "E009"),
    ("worker_sources", ("database", "folder"), "E010"),
    ("timed_out_running_tasks", ("skipped", "failed"), "E011"),
    ("interrupted_tasks", ("with_retries", "all", "none"), "E012"),
)


@register()
def check_conf(**kwargs: Any) -> list[CheckMessage]:
    """Names, types, bounds, and the relations between knobs."""
    try:
        values = conf()
    except (ImproperlyConfigured, TypeError, ValueError) as error:
        return [Error(str(error), id="scheduler_app.E001")]
    return [*_bounds(values), *_relations(values)]


def _bounds(values: Conf) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for spec in dataclasses.fields(values):
        value, least = getattr(values, spec.name), spec.metadata["least"]
        if least is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float):
            found.append(Error(f"SCHEDULER[{spec.name!r}] must be a number, not {value!r}.", id="scheduler_app.E002"))
        elif value < least:
            found.append(
                Error(f"SCHEDULER[{spec.name!r}] is {value}; the least is {least:g}.", id="scheduler_app.E003")
            )
    return found


def _relations(values: Conf) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    if values.lease_seconds < 2 * values.heartbeat_seconds:
        found.append(
            Error(
                "SCHEDULER['lease_seconds'] must be at least twice heartbeat_seconds.",
                hint="One late heartbeat would otherwise make a living process count as dead.",
                id="scheduler_app.E004",
            )
        )
    if values.task_heartbeat_timeout_seconds < 2 * values.heartbeat_seconds:
        found.append(
            Error(
                "SCHEDULER['task_heartbeat_timeout_seconds'] must be at least twice heartbeat_seconds.",
                id="scheduler_app.E005",
            )
        )
    if values.database_alias not in settings.DATABASES:
        found.append(
            Error(
                f"SCHEDULER['database_alias'] is {values.database_alias!r}, which is not in DATABASES.",
                hint=f"DATABASES has: {', '.join(sorted(settings.DATABASES))}.",
                id="scheduler_app.E006",
            )
        )
    for name, allowed, code in _CHOICES:
        value = getattr(values, name)
        if value not in allowed:
            text = f"SCHEDULER['{name}'] is {value!r}; it must be {' or '.join(allowed)}."
            found.append(Error(text, id=f"scheduler_app.{code}"))
    try:
        ZoneInfo(values.default_timezone)
    except (KeyError, ValueError, OSError):
        found.append(
            Error(f"SCHEDULER['default_timezone'] {values.default_timezone!r} is no zone.", id="scheduler_app.E007")
        )
    return [*found, *_log_store(values.log_store)]


def _log_store(url: str) -> list[CheckMessage]:
    """Without its driver no log would be shipped, and none be shown that another machine wrote."""
    if url in ("", "database"):
        return []
    protocol = split_protocol(url)[0] or "file"
    try:
        get_filesystem_class(protocol)
    except (ImportError, ValueError) as error:
        driver = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs"}.get(protocol)
        hint = f"pip install {driver}, for the web server and every process that runs tasks." if driver else None
        text = f"SCHEDULER['log_store'] is a URL of {protocol}, which cannot be used: {error}."
        return [Error(text, hint=hint or "It is a URL of fsspec, or database.", id="scheduler_app.E013")]
    return []


@register()
def check_engine(**kwargs: Any) -> list[CheckMessage]:
    """Our tables need PostgreSQL: SKIP LOCKED, NOTIFY, partial indexes."""
    database = settings.DATABASES.get(getattr(settings, "SCHEDULER", {}).get("database_alias", "default"), {})
    if "postg" in database.get("ENGINE", ""):
        return []
    return [
        Error(
            f"The scheduler's database uses {database.get('ENGINE') or 'no engine'}; it needs PostgreSQL.",
            hint="Set DATABASE_URL=postgresql://user:password@host/name.",
            id="scheduler_app.E008",
        )
    ]


@register(deploy=True)
def check_keys(**kwargs: Any) -> list[CheckMessage]:
    """Keys that were made up for this process only."""
    found: list[CheckMessage] = []
    if getattr(settings, "SECRET_KEY_IS_TEMPORARY", False):
        found.append(
            Warning(
                "No secret key is set: sessions end with this process.",
                hint="Set SCHEDULER_SECRET_KEY, or start bin/run once.",
                id="scheduler_app.W001",
            )
        )
    if not conf().fernet_keys:
        found.append(
            Warning(
                "No Fernet key is set: variables and connections cannot be stored.",
                hint="Set SCHEDULER_FERNET_KEYS, or start bin/run once.",
                id="scheduler_app.W002",
            )
        )
    return found
