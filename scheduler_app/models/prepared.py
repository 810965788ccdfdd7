"""Statements on a few rows, prepared: the server plans them once for many executions (ADR 9).

Planning one took two to five times as long as running it. Their plan is the generic one, made for ten elements an array
whatever is passed, so it is for a few rows, or for what is found the same way however many there are: each by its key.
It is made with sequential scans forbidden, for the table may be small now and large in a second (of 1,000 new runs each
look-up then read all, which doubled the database's work); and a look-up by key stays one when the server would rather
read 10⁵ waiting rows. A plan lives for so many executions and so long, or until it has found many more rows than
before, whichever is first.

Where a pool of connections between us and the server gives each transaction another connection, none of this holds: the
first error that says so turns it off for the process, and the transaction is tried again.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import logging
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from django.db import DatabaseError

log = logging.getLogger("scheduler_app.models")

#: So many rows are "a few": up to here the generic plan is the one that a custom plan would be.
FEW = 16
#: A plan is made anew after so many executions (then planning costs 0.1 % of them), and after so long.
_EXECUTIONS = 1000
_SECONDS = 60.0

#: "Prepared statement does not exist" and "exists already": somebody else is at the other end of the connection.
NOT_OURS = frozenset({"26000", "42P05"})

#: Holds for this transaction, in which nothing else is prepared.
_GENERIC = "SET LOCAL plan_cache_mode = force_generic_plan"
#: While a plan is made: no scan of all rows, no merge along a whole index (and no JIT, which what is forbidden and
#: used all the same, for want of an index, would set off).
_BY_KEY = "SET LOCAL enable_seqscan = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off"
_AS_BEFORE = "; ".join(f"SET LOCAL {name} = DEFAULT" for name in ("enable_seqscan", "enable_mergejoin", "jit"))

_PLACE = re.compile(r"%\((\w+)\)s(::\w+(?:\[\])?)?|%%")
_numbers = itertools.count(1)
_refused = False


@dataclass(frozen=True, slots=True)
class _Form:
    """A statement with numbered parameters, and the list of arguments that gives them their values."""

    text: str
    arguments: str
    #: the same list without values: what a plan is made with
    blanks: str
    #: says in the server's list of activity what is being executed
    label: str


@dataclass(slots=True)
class _Plan:
    name: str
    execute: str
    left: int
    born: float
    #: rows that were found when a plan of the statement was last given up for their number
    many: int

    @property
    def is_worn(self) -> bool:
        return self.left <= 0 or time.monotonic() - self.born > _SECONDS


#: driver's connection → statement → its plan
_plans: WeakKeyDictionary[Any, dict[str, _Plan]] = WeakKeyDictionary()


def all_of(array: str) -> str:
    """The end of a subquery on ``unnest(array)``: it takes all rows, yet a plan that must guess how many expects one,
    and looks each up by its key (expecting ten, it read a table of a thousand rows from end to end)."""
    return f"LIMIT cardinality({array})"


def is_few(rows: Sequence[object]) -> bool:
    """Whether a statement about these rows is worth preparing."""
    return len(rows) <= FEW


def execute(cursor: Any, sql: str, params: Mapping[str, Any], first: str = "") -> None:
    """Runs ``sql`` (with named parameters alone) by its prepared plan; the rows are in the cursor afterwards.

    ``first``: a statement of its own that goes before it in the same trip.
    """
    if _refused:
        cursor.execute(f"{first}; {sql}" if first else sql, params)
        return
    plans = _plans.setdefault(cursor.connection, {})
    plan = plans.get(sql)
    if plan is None or plan.is_worn:
        plan = plans[sql] = _prepare(cursor, sql, plan)
    plan.left -= 1
    try:
        cursor.execute(f"{first}; {plan.execute}" if first else plan.execute, params)
    except DatabaseError as error:
        plan.left = 0  # whatever it was: a column that changed its type makes a plan useless for ever
        _judge(error)
        raise
    if cursor.rowcount > max(FEW, 2 * plan.many):
        # many at once: the next plan is for the tables as they are then, whatever they were before
        plan.left, plan.many = 0, cursor.rowcount


def _prepare(cursor: Any, sql: str, worn: _Plan | None) -> _Plan:
    form = _form(sql)
    # of the text too: what another process left on a shared connection under the same name is then the same statement
    name = f"scheduler_{hashlib.blake2s(sql.encode(), digest_size=6).hexdigest()}_{next(_numbers)}"
    drop = f"DEALLOCATE {worn.name}; " if worn is not None else ""
    try:
        cursor.execute(
            f"{drop}PREPARE {name} AS {form.text}; {_GENERIC}; {_BY_KEY};"
            f" EXPLAIN EXECUTE {name}{form.blanks}; {_AS_BEFORE}"
        )
    except DatabaseError as error:
        _plans[cursor.connection].pop(sql, None)
        _judge(error)
        raise
    run = f"{_GENERIC}; EXECUTE {name}{form.arguments} /* {form.label} */"
    return _Plan(name, run, _EXECUTIONS, time.monotonic(), worn.many if worn is not None else 0)


def _judge(error: DatabaseError) -> None:
    global _refused
    if getattr(error.__cause__, "pgcode", None) in NOT_OURS:
        _refused = True
        log.warning("The database connection keeps no prepared statements (%s): none are used from now on", error)


@functools.cache
def _form(sql: str) -> _Form:
    numbers: dict[str, int] = {}
    casts: dict[str, str] = {}

    def place(found: re.Match[str]) -> str:
        if found[0] == "%%":
            return "%"
        name, cast = found[1], found[2] or ""
        casts[name] = casts.get(name) or cast
        return f"${numbers.setdefault(name, len(numbers) + 1)}{cast}"

    text = _PLACE.sub(place, sql)
    arguments = ", ".join(f"%({name})s{casts[name]}" for name in numbers)
    label = re.sub(r"\s+|[%*/]", " ", text).strip()[:100]
    blanks = ", ".join("NULL" for _ in numbers)
    return _Form(text, *(f"({some})" if some else "" for some in (arguments, blanks)), label)
