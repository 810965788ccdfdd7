"""A DAG's params: what a run's conf may override, and whether the result fits the schemas.

A param's document is ``{"value": …, "schema": {…}, "description": …}``; without a "value" key it is required. As in
Airflow, conf is laid over the declared values key by key (nothing is merged inside a value), keys that no param has are
accepted, and every param is checked afterwards, overridden or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, Final, NamedTuple

from jsonschema import FormatChecker, SchemaError, ValidationError
from jsonschema.validators import validator_for

Json = Any

_FORMATS: Final = FormatChecker(formats=())


class Resolved(NamedTuple):
    """``values`` are what templates and tasks see as ``params``; use them only when ``errors`` is empty."""

    values: dict[str, Json]
    #: param name → what is wrong with it, as a sentence
    errors: dict[str, str]


def resolve(params: Mapping[str, Json], conf: Mapping[str, Json] | None = None) -> Resolved:
    """Declared values with ``conf`` on top, each checked against its schema."""
    values: dict[str, Json] = {}
    errors: dict[str, str] = {}
    given = conf or {}
    for name, param in params.items():
        if name not in given and "value" not in param:
            errors[name] = f"Param {name!r} is required: give it in the run's conf."
            continue
        values[name] = given[name] if name in given else param["value"]
        problem = _problem(values[name], param.get("schema") or {})
        if problem is not None:
            errors[name] = f"Param {name!r} is not valid: {problem}"
    values.update({name: value for name, value in given.items() if name not in params})
    return Resolved(values, errors)


def _problem(value: Json, schema: dict[str, Json]) -> str | None:
    if not schema:
        return None
    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
        error = next(iter(sorted(kind(schema, format_checker=_FORMATS).iter_errors(value), key=_depth)), None)
    except SchemaError as broken:
        return f"its own schema is broken ({broken.message})."
    return None if error is None else f"{error.message}."


def _depth(error: ValidationError) -> int:
    return len(error.absolute_path)


@_FORMATS.checks("date", raises=ValueError)
def _is_date(value: object) -> bool:
    return not isinstance(value, str) or (len(value) == len("2024-01-01") and date.fromisoformat(value) is not None)


@_FORMATS.checks("time", raises=ValueError)
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or time.fromisoformat(value) is not None


@_FORMATS.checks("date-time", raises=ValueError)
def _is_datetime(value: object) -> bool:
    """RFC 3339: a date, a time and an offset."""
    return not isinstance(value, str) or datetime.fromisoformat(value).tzinfo is not None
