"""A database that is away, or has not our tables, is told in one line that says what to do; the exit code is 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, ProgrammingError

#: What ``execute`` may raise for the database's sake.
ERRORS = (OperationalError, InterfaceError, ProgrammingError)
#: SQLSTATEs of a table or column that does not exist.
_NOT_THERE = frozenset({"42P01", "42703"})
MIGRATE = "Run `manage.py migrate` (bin/run does it by itself)."


class DatabaseCommand(BaseCommand):
    def execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except ERRORS as error:
            told = advice(error)
            if told is None:
                raise
            raise CommandError(told) from error


def advice(error: BaseException) -> str | None:
    """The line for the terminal; None for an error that is ours, and needs its traceback."""
    missing = next((one for one in _chain(error) if getattr(one, "pgcode", None) in _NOT_THERE), None)
    if missing is not None:
        return f"The database lacks tables or columns of this version ({_line(missing)}). {MIGRATE}"
    if isinstance(error, ProgrammingError):
        return None
    return f"{_line(error)} {getattr(settings, 'DATABASE_ADVICE', '')}".strip()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what it came from: a cursor that cannot be closed hides why."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            yield one
            waiting += [one.__context__, one.__cause__]


def _line(error: BaseException) -> str:
    """Without where in the statement it was."""
    return " ".join(str(error).partition("\nLINE ")[0].split())
