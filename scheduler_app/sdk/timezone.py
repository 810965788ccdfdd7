"""Time zones and aware datetimes at the edge of DAG files. Times without a zone are UTC."""

from __future__ import annotations

import datetime as dt
from typing import Any

utc = dt.UTC


def utcnow() -> Any:
    """The present as an aware pendulum DateTime in UTC. Only task code, which is an edge, may call this."""
    import pendulum

    return pendulum.now("UTC")


def is_localized(value: dt.datetime) -> bool:
    return value.utcoffset() is not None


def is_naive(value: dt.datetime) -> bool:
    return value.utcoffset() is None


def make_aware(value: dt.datetime, timezone: Any = None) -> Any:
    """``value`` read as local time of ``timezone`` (UTC when absent). Raises ValueError when it has a zone already."""
    if is_localized(value):
        raise ValueError(f"{value!r} has a time zone already.")
    import pendulum

    return pendulum.instance(value, tz=timezone or "UTC")


def make_naive(value: dt.datetime, timezone: Any = None) -> dt.datetime:
    """The local time of ``value`` in ``timezone``, without the zone."""
    if is_naive(value):
        raise ValueError(f"{value!r} has no time zone.")
    local = value.astimezone(timezone or utc)
    return dt.datetime(local.year, local.month, local.day, local.hour, local.minute, local.second, local.microsecond)


def datetime(*args: Any, **kwargs: Any) -> dt.datetime:
    """As ``datetime.datetime``, in UTC unless ``tzinfo`` says otherwise."""
    kwargs.setdefault("tzinfo", utc)
    return dt.datetime(*args, **kwargs)


def convert_to_utc(value: dt.datetime | None) -> Any:
    """``value`` in UTC as a pendulum DateTime; a naive one is read as UTC; None stays None."""
    return coerce_datetime(value, tz="UTC")


def coerce_datetime(value: dt.datetime | None, tz: Any = None) -> Any:
    """``value`` as an aware pendulum DateTime (naive ones are UTC), moved to ``tz`` when given."""
    if value is None:
        return None
    import pendulum

    if is_naive(value):
        value = value.replace(tzinfo=utc)
    made = value if isinstance(value, pendulum.DateTime) else pendulum.instance(value)
    return made if tz is None else made.in_timezone(tz)


def parse(text: str, timezone: Any = None, strict: bool = False) -> Any:
    """A pendulum DateTime from ISO 8601 text. Raises ValueError."""
    import pendulum

    return pendulum.parse(text, tz=timezone or "UTC", strict=strict)


def parse_timezone(name: str | int) -> Any:
    """The pendulum timezone of a name (or of an offset in seconds). Raises ValueError for unknown names."""
    import pendulum

    return pendulum.timezone(name)


def from_timestamp(seconds: float, tz: Any = "UTC") -> Any:
    import pendulum

    return pendulum.from_timestamp(seconds, tz="UTC" if tz is utc else tz)


def name_of(zone: Any) -> str:
    """The IANA name (or ``+hh:mm``) of any tzinfo."""
    for attribute in ("name", "key", "zone"):
        name = getattr(zone, attribute, None)
        if isinstance(name, str) and name:
            return name
    if zone is None:
        return "UTC"
    return _offset_name(zone)


def _offset_name(zone: dt.tzinfo) -> str:
    offset = zone.utcoffset(None)
    if not offset:
        return "UTC"
    minutes = int(offset.total_seconds()) // 60
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
