"""A cron expression in words, where that is simple; else the expression itself."""

from __future__ import annotations

from typing import Final

_DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NAMES: Final = {day[:3].lower(): day for day in _DAYS}


def describe(expression: str) -> str:
    """``5 4 * * 1`` → "At 04:05 on Monday"."""
    fields = expression.split()
    if len(fields) != 5:
        return f"Cron {expression}"
    time, day = _time(fields[0], fields[1]), _day(*fields[2:])
    return f"{time}{day}" if time is not None and day is not None else f"Cron {expression}"


def _time(minute: str, hour: str) -> str | None:
    if minute.isdigit() and hour.isdigit():
        return f"At {int(hour):02}:{int(minute):02}"
    if hour != "*":
        return None
    if minute.isdigit():
        return "Every hour" if int(minute) == 0 else f"At {int(minute)} minutes past every hour"
    if minute == "*":
        return "Every minute"
    return f"Every {minute[2:]} minutes" if minute.startswith("*/") and minute[2:].isdigit() else None


def _day(day: str, month: str, weekday: str) -> str | None:
    if month != "*":
        return None
    if weekday == "*":
        return "" if day == "*" else (f" on day {day} of the month" if day.isdigit() else None)
    name = _NAMES.get(weekday.lower()) or (_DAYS[int(weekday)] if weekday.isdigit() and int(weekday) < 8 else None)
    return f" on {name}" if name is not None and day == "*" else None
