"""Query parameters: read by kind, checked, and turned into filters of a QuerySet. Resources hold tables of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import QueryDict
from django.utils.dateparse import parse_date, parse_datetime

from scheduler_app.models import DagModel

from . import errors
from . import lookups as lookups  # registers ``ilike``

Read = Callable[[str], Any]
Narrow = Callable[[Any, Any], Any]

_BIGGEST = 2**31 - 1
#: Signs at the end of a prefix are ignored, as Airflow does.
_NOT_ALNUM = "".join(chr(code) for code in range(32, 127) if not chr(code).isalnum())


class Wrong(ValueError):
    """What a parameter must be; the text ends up in a 422."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def text(raw: str) -> str:
    return raw


def whole(raw: str) -> int:
    try:
        value = int(raw)
    except ValueError as error:
        raise Wrong("int_parsing", "Input should be a valid integer, unable to parse string as an integer") from error
    if abs(value) > _BIGGEST:
        raise Wrong("int_parsing_size", "Input should be an integer of 32 bits")
    return value


def number(raw: str) -> float:
    try:
        value = float(raw)
    except ValueError as error:
        raise Wrong("float_parsing", "Input should be a valid number") from error
    if not math.isfinite(value) or abs(value) > 1e9:
        raise Wrong("finite_number", "Input should be a finite number below 1e9")
    return value


def flag(raw: str) -> bool:
    known = {"true": True, "1": True, "yes": True, "on": True, "t": True, "y": True}
    known |= {"false": False, "0": False, "no": False, "off": False, "f": False, "n": False}
    try:
        return known[raw.lower()]
    except KeyError as error:
        raise Wrong("bool_parsing", "Input should be a valid boolean, unable to interpret input") from error


def moment(raw: str) -> datetime:
    """An instant; one without an offset is read as UTC, a bare date as its midnight."""
    try:
        # A plus that the caller did not escape arrives as a space.
        found = parse_datetime(raw.strip().replace(" ", "+") if "T" in raw else raw.strip())
        if found is None and (day := parse_date(raw.strip())) is not None:
            found = datetime(day.year, day.month, day.day, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise Wrong("datetime_parsing", f"Input should be a valid datetime, {error}") from error
    if found is None:
        raise Wrong("datetime_parsing", "Input should be a valid datetime")
    return in_utc(found)


def in_utc(value: datetime) -> datetime:
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError as error:
        raise Wrong("datetime_parsing", "Input should be a datetime between the years 1 and 9999 in UTC") from error


def seconds(raw: str) -> timedelta:
    return timedelta(seconds=number(raw))


@dataclass(frozen=True, slots=True)
class OneOf:
    """A word of a list; the document of the API shows the list."""

    allowed: tuple[str, ...]

    def __call__(self, raw: str) -> str:
        if raw not in self.allowed:
            raise Wrong("literal_error", f"Input should be {', '.join(map(repr, self.allowed))}")
        return raw


def one_of(*allowed: str) -> Read:
    return OneOf(allowed)


@dataclass(frozen=True, slots=True)
class Param:
    """One query parameter that narrows a list: how it is read, and what it does to the rows."""

    name: str
    read: Read
    narrow: Narrow
    many: bool = False


def exact(name: str, field: str = "", read: Read = text) -> Param:
    return Param(name, read, lambda rows, value: rows.filter(**{field or name: value}))


def any_of(name: str, field: str = "", read: Read = text) -> Param:
    """A parameter that may be given several times: the row matches one of them."""
    return Param(name, read, lambda rows, values: rows.filter(**{f"{field or name}__in": values}), many=True)


def state_in(name: str, allowed: Iterable[str | None], field: str = "state") -> Param:
    """States; ``none``, ``null`` and ``no_status`` mean a task instance that nobody has looked at yet."""
    known = {state for state in allowed if state}

    def read(raw: str) -> str | None:
        if raw in ("none", "null", "no_status", "None"):
            return None
        if raw not in known:
            raise Wrong("value_error", f"Invalid value for state. Valid values are {', '.join(sorted(known))}, none")
        return raw

    def narrow(rows: Any, values: list[str | None]) -> Any:
        scope = Q(**{f"{field}__in": [value for value in values if value]})
        return rows.filter(scope | Q(**{f"{field}__isnull": True}) if None in values else scope)

    return Param(name, read, narrow, many=True)


def matching(name: str, field: str) -> tuple[Param, Param]:
    """``<name>_pattern`` (any case, ``%`` and ``_`` as in SQL, anywhere) and ``<name>_prefix_pattern``; ``|`` is OR."""

    def pattern(rows: Any, value: str) -> Any:
        words = [word.strip() for word in value.split("|") if word.strip()]
        if not words or "~" in words:
            return rows
        scope = Q()
        for word in words:
            scope |= Q(**{f"{field}__ilike": f"%{word}%"})
        return rows.filter(scope)

    def prefix(rows: Any, value: str) -> Any:
        words = [word.strip() for word in value.split("|") if word.strip()]
        if not words or "~" in words:
            return rows
        scope = Q()
        for word in words:
            scope |= Q(**{f"{field}__startswith": word.rstrip(_NOT_ALNUM) or word})
        return rows.filter(scope)

    return Param(f"{name}_pattern", text, pattern), Param(f"{name}_prefix_pattern", text, prefix)


def of_dags(name: str, field: str) -> tuple[Param, ...]:
    """As :func:`matching`, by the ids of DAGs: a thousand DAGs are searched instead of a million rows that name one."""

    def through(param: Param) -> Param:
        return Param(
            param.name,
            param.read,
            lambda rows, value: rows.filter(
                **{f"{field}__in": param.narrow(DagModel.objects.all(), value).values("pk")}
            ),
        )

    return tuple(through(param) for param in matching(name, "dag_id"))


def bounds(name: str, field: str = "", read: Read = moment) -> tuple[Param, ...]:
    """``<name>_gte``, ``_gt``, ``_lte`` and ``_lt``."""
    return tuple(
        Param(
            f"{name}_{word}",
            read,
            lambda rows, value, word=word: rows.filter(**{f"{field or name}__{word}": value}),  # type: ignore[misc]
        )
        for word in ("gte", "gt", "lte", "lt")
    )


def duration_bounds() -> tuple[Param, ...]:
    """``duration_*`` in seconds, over rows that have both dates."""
    return tuple(
        Param(
            f"duration_{word}",
            seconds,
            lambda rows, value, word=word: rows.alias(took=F("end_date") - F("start_date")).filter(  # type: ignore[misc]
                **{f"took__{word}": value}
            ),
        )
        for word in ("gte", "gt", "lte", "lt")
    )


def narrow(rows: QuerySet[Any], table: Sequence[Param], query: QueryDict) -> QuerySet[Any]:
    """The rows that the request's parameters leave. Raises NotValid with every parameter that is wrong."""
    wrong: list[dict[str, Any]] = []
    for param in table:
        raws = query.getlist(param.name)
        if not raws:
            continue
        values = []
        for place, raw in enumerate(raws if param.many else raws[-1:]):
            try:
                values.append(param.read(raw))
            except Wrong as error:
                loc = ["query", param.name, *([place] if param.many else [])]
                wrong.append(errors.item(error.kind, loc, str(error), raw))
        if values and not wrong:
            rows = param.narrow(rows, values if param.many else values[0])
    if wrong:
        raise errors.NotValid(wrong)
    return rows


def get(query: QueryDict, name: str, read: Read, default: Any = None) -> Any:
    """One parameter. Raises NotValid."""
    raw = query.get(name)
    if raw is None:
        return default
    try:
        return read(raw)
    except Wrong as error:
        raise errors.not_valid(error.kind, ["query", name], str(error), raw) from error


def must_get(query: QueryDict, name: str, read: Read) -> Any:
    if query.get(name) is None:
        raise errors.not_valid("missing", ["query", name], "Field required")
    return get(query, name, read)


def in_path(raw: str, name: str) -> int:
    """A number in the path. Raises NotValid."""
    try:
        return whole(raw)
    except Wrong as error:
        raise errors.not_valid(error.kind, ["path", name], str(error), raw) from error
