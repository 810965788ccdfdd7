"""How values are written in answers."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core import signing

_FILE_SALT = "scheduler.api.file"


def stamp(value: datetime | None) -> str | None:
    """An instant as RFC 3339 in UTC with ``Z``."""
    if value is None:
        return None
    text = value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def took(start: datetime | None, end: datetime | None) -> float | None:
    """Seconds between two instants, None while there are not two."""
    return (end - start).total_seconds() if start is not None and end is not None else None


def iso_duration(seconds: float | None) -> str | None:
    """A duration in ISO 8601: 7200 is ``PT2H``, 90061.5 is ``P1DT1H1M1.5S``."""
    if seconds is None:
        return None
    whole = timedelta(seconds=seconds)
    days, rest = whole.days, whole.seconds + whole.microseconds / 1e6
    hours, rest = divmod(rest, 3600)
    minutes, last = divmod(rest, 60)
    clock = f"{hours:.0f}H" * (hours > 0) + f"{minutes:.0f}M" * (minutes > 0)
    clock += f"{round(last, 6):g}S" * (last > 0)
    if not days and not clock:
        return "PT0S"
    return f"P{f'{days}D' * (days != 0)}{f'T{clock}' * bool(clock)}"


def time_delta(seconds: float | None) -> dict[str, Any] | None:
    """A duration as Airflow writes those of tasks."""
    if seconds is None:
        return None
    whole = timedelta(seconds=seconds)
    return {"__type": "TimeDelta", "days": whole.days, "seconds": whole.seconds, "microseconds": whole.microseconds}


def file_token(bundle: str, path: str) -> str:
    """An opaque, signed name of a DAG file, for ``PUT /parseDagFile/{file_token}``."""
    return signing.Signer(salt=_FILE_SALT).sign_object([bundle, path])


def read_file_token(token: str) -> tuple[str, str]:
    """(bundle, path). Raises django.core.signing.BadSignature."""
    bundle, path = signing.Signer(salt=_FILE_SALT).unsign_object(token)
    return bundle, path
