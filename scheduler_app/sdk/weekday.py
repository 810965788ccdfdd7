"""Days of the week, as sensors and branches take them."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any


class WeekDay(enum.IntEnum):
    """ISO numbers: Monday is 1."""

    MONDAY = 1
    TUESDAY = 2
    WEDNESDAY = 3
    THURSDAY = 4
    FRIDAY = 5
    SATURDAY = 6
    SUNDAY = 7

    @classmethod
    def get_weekday_number(cls, name: str) -> WeekDay:
        """Raises AttributeError for what is no day."""
        try:
            return cls[name.upper()]
        except KeyError:
            raise AttributeError(f"{name!r} is no day of the week: use Monday … Sunday.") from None

    @classmethod
    def convert(cls, day: Any) -> int:
        return cls.get_weekday_number(day) if isinstance(day, str) else cls(day)

    @classmethod
    def validate_week_day(cls, week_day: Any) -> set[int]:
        """The ISO numbers of a day, a name, or several. Raises TypeError, AttributeError."""
        if isinstance(week_day, (str, WeekDay)):
            return {cls.convert(week_day)}
        if isinstance(week_day, Iterable) and not isinstance(week_day, dict) and week_day:
            return {cls.convert(day) for day in week_day}
        raise TypeError(f"week_day is a day, the name of one, or a set of them, not {week_day!r}.")
