"""The one way to the database: our tables may live on a named database of a host project.

Nobody else calls ``transaction.atomic``, ``connection`` or ``on_commit`` (a lint rule says so).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any

import psycopg2
from django.db import DatabaseError, InterfaceError, OperationalError, connections, transaction

from scheduler_app import metrics
from scheduler_app.conf import conf

from . import prepared

#: The channel on which committed work is announced: a hint that ends a sleep, never the work itself.
CHANNEL = "scheduler_wake"
#: As above, for runners: a task instance was taken from the attempt that runs it.
STOP_CHANNEL = "scheduler_stop"
#: As above, for triggerers: a trigger waits for one of them.
TRIGGER_CHANNEL = "scheduler_trigger"
#: As above: a task instance waits for its trigger no longer.
TRIGGER_STOP_CHANNEL = "scheduler_trigger_stop"

#: SQLSTATEs after which the same transaction may simply be tried again: it lost a conflict; the server stops, starts,
#: lacks memory, disk or connections; this server has become a standby and the next connection finds the new one; or the
#: connection keeps no prepared statements.
TRANSIENT = frozenset(
    {
        *("40001", "40P01", "55P03"),
        *("57P01", "57P02", "57P03", "53000", "53100", "53200", "53300", "25006"),
        *("08000", "08001", "08003", "08004", "08006", "08007"),
        *prepared.NOT_OURS,
    }
)


def alias() -> str:
    """The name in ``settings.DATABASES`` that holds our tables."""
    return conf().database_alias


def connection() -> Any:
    return connections[alias()]


@contextlib.contextmanager
def atomic(*, savepoint: bool = True, durable: bool = False) -> Iterator[None]:
    """A transaction, or a savepoint in one; what is counted in it counts when it commits."""
    with metrics.held_back(), transaction.atomic(using=alias(), savepoint=savepoint, durable=durable):
        yield


def on_commit(hint: Callable[[], object]) -> None:
    """Runs a *hint* after commit (I8): what must happen is a row instead."""
    transaction.on_commit(hint, using=alias(), robust=True)


@contextlib.contextmanager
def cursor() -> Iterator[Any]:
    with connection().cursor() as handle:
        yield handle


def fetch(
    sql: str, params: Sequence[Any] | dict[str, Any] = (), *, keep_plan: bool = False, first: str = ""
) -> list[tuple[Any, ...]]:
    """All rows of one statement. ``keep_plan``: it runs often and about few rows, see ``models.prepared``.

    ``first``: a statement of its own (its rows are lost) that is over before this one takes its snapshot; both travel
    in one trip.
    """
    with cursor() as handle:
        run(handle, sql, params, keep_plan=keep_plan, first=first)
        return list(handle.fetchall())


def fetch_named(sql: str, params: dict[str, Any], *, keep_plan: bool = False) -> list[dict[str, Any]]:
    """As :func:`fetch`, each row by the names of its columns."""
    with cursor() as handle:
        run(handle, sql, params, keep_plan=keep_plan)
        names = [column.name for column in handle.description]
        return [dict(zip(names, row, strict=True)) for row in handle.fetchall()]


def execute(sql: str, params: Sequence[Any] | dict[str, Any] = (), *, keep_plan: bool = False) -> int:
    """Runs one statement and returns how many rows it touched; ``keep_plan`` as in :func:`fetch`."""
    with cursor() as handle:
        run(handle, sql, params, keep_plan=keep_plan)
        return int(handle.rowcount)


def run(handle: Any, sql: str, params: Sequence[Any] | dict[str, Any], *, keep_plan: bool, first: str = "") -> None:
    """Runs one statement on a cursor of :func:`cursor`; ``first`` as in :func:`fetch`."""
    if keep_plan:
        prepared.execute(handle, sql, dict(params), first)
    else:
        handle.execute(f"{first}; {sql}" if first else sql, params or None)


def clock() -> datetime:
    """The database's clock (I7): called at a process's edge, once a tick, and passed on as ``now``."""
    now: datetime = fetch("SELECT clock_timestamp()")[0][0]
    return now


def notify() -> None:
    """Ends the sleep of every scheduler when this transaction commits."""
    execute(f"NOTIFY {CHANNEL}")


def is_transient(error: BaseException) -> bool:
    """Whether the same transaction may succeed when tried again: lost connection, deadlock, restart."""
    cause = error.__cause__ if error.__cause__ is not None else error
    state = getattr(cause, "pgcode", None)
    if state is not None:
        return state in TRANSIENT
    if type(cause) is psycopg2.DatabaseError:
        return True  # no answer from the server at all: it went away in the middle, and libpq had not noticed yet
    return isinstance(error, (InterfaceError, OperationalError, psycopg2.InterfaceError, psycopg2.OperationalError))


def close() -> None:
    """Drops this process's connection; the next statement opens a new one."""
    connections[alias()].close()


__all__ = [
    "CHANNEL",
    "STOP_CHANNEL",
    "TRIGGER_CHANNEL",
    "TRIGGER_STOP_CHANNEL",
    "DatabaseError",
    "InterfaceError",
    "alias",
    "atomic",
    "clock",
    "close",
    "connection",
    "cursor",
    "execute",
    "fetch",
    "fetch_named",
    "is_transient",
    "notify",
    "on_commit",
    "run",
]
