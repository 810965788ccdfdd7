"""Zones, and what a clock change does to a local time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{2}):?(\d{2})")
#: No zone has moved its clock by more at once, in the years that schedules are about.
LONGEST_SHIFT: Final = timedelta(hours=4)

GAPS: Final = (None, "same_offset", "next_valid", "skip")
OVERLAPS: Final = (None, "first", "second", "both")


@lru_cache(maxsize=512)
def zone(name: str) -> tzinfo:
    """The zone of an IANA name, ``UTC`` or ``+HH:MM``. ValueError for another text."""
    if name.upper() == "UTC":
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes))
        return timezone(-shift if sign == "-" else shift)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        text = f"There is no time zone {name!r}: use an IANA name such as Europe/Berlin, or +02:00."
        raise ValueError(text) from error


def instants(local: datetime, tz: tzinfo, gap: str | None, overlap: str | None) -> list[datetime]:
    """The instants (UTC, ascending) at which a clock in ``tz`` shows a naive local time, under the policies of
    ``timetables/__init__.py``: none, one or two."""
    first = local.replace(tzinfo=tz, fold=0).astimezone(UTC)
    second = local.replace(tzinfo=tz, fold=1).astimezone(UTC)
    if first == second:
        return [first]
    if first < second:
        return {"first": [first], "both": [first, second]}.get(overlap or "second", [second])
    # in a gap fold=0 reads the clock with the offset before the change, fold=1 with the one after it
    if gap == "skip":
        return []
    return [_change_between(second, first, tz)] if gap == "next_valid" else [first]


def steady(at: datetime, tz: tzinfo) -> bool:
    """The zone does not move its clock near an instant."""
    if isinstance(tz, timezone):
        return True
    return (at - LONGEST_SHIFT).astimezone(tz).utcoffset() == (at + LONGEST_SHIFT).astimezone(tz).utcoffset()


def naive(at: datetime, tz: tzinfo) -> datetime:
    """What a clock in ``tz`` shows."""
    return at.astimezone(tz).replace(tzinfo=None, fold=0)


def _change_between(low: datetime, high: datetime, tz: tzinfo) -> datetime:
    """The second at which the zone's offset becomes that of ``high``."""
    after = high.astimezone(tz).utcoffset()
    low_s, high_s = int(low.timestamp()), int(high.timestamp())
    while high_s - low_s > 1:
        middle = (low_s + high_s) // 2
        if datetime.fromtimestamp(middle, tz).utcoffset() == after:
            high_s = middle
        else:
            low_s = middle
    return datetime.fromtimestamp(high_s, UTC)
