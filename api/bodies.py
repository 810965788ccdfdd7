"""Request bodies: strict (an unknown key is an error), and errors as Airflow's server words them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from rest_framework import exceptions, serializers
from rest_framework.request import Request

from . import errors, params

#: How an ISO 8601 instant that names its offset ends; a plus that was not escaped may have become a space.
_OFFSET = re.compile(r"[T ]\d\d.*(?:[zZ]|[+\- ]\d\d(?::?\d\d)?)$")
#: Longest note that a person may leave.
NOTE = 1000


class Text(serializers.CharField):
    """A text, as it is: no number becomes one, nothing is trimmed."""

    default_error_messages = {"string_type": "Input should be a valid string"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"allow_blank": True, "trim_whitespace": False, **kwargs})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("string_type")
        return str(super().to_internal_value(data))


class Moment(serializers.Field[Any, Any, Any, Any]):
    """An instant with its offset: a body never leaves the zone to be guessed (a filter in a query may)."""

    default_error_messages = {
        "datetime": "Input should be a valid datetime",
        "timezone_aware": "Input should have timezone info",
    }

    def to_internal_value(self, data: Any) -> datetime:
        if not isinstance(data, str):
            return self.fail("datetime")
        try:
            found = params.moment(data)
        except params.Wrong:
            return self.fail("datetime")
        return found if _OFFSET.search(data.strip()) else self.fail("timezone_aware")

    def to_representation(self, value: Any) -> Any:
        return value.isoformat()


class Flag(serializers.BooleanField):
    """A boolean; where it may be null, null means "not said"."""


class Conf(serializers.Field[Any, Any, Any, Any]):
    """A JSON object."""

    default_error_messages = {"dict": "Input should be a valid dictionary"}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        return data if isinstance(data, dict) else self.fail("dict")

    def to_representation(self, value: Any) -> Any:
        return value


class Body(serializers.Serializer[Any]):
    """The base of bodies."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise exceptions.ValidationError("Input should be a valid dictionary or object", code="model_type")
        extra = {
            str(key): [exceptions.ErrorDetail("Extra inputs are not permitted", "extra")]
            for key in data
            if key not in self.fields
        }
        try:
            found = super().to_internal_value(data)
        except exceptions.ValidationError as error:
            # every mistake is named at once
            raise exceptions.ValidationError({**extra, **_details(error)}) from error
        if extra:
            raise exceptions.ValidationError(extra)
        return found


def _details(error: exceptions.ValidationError) -> dict[str, Any]:
    return error.detail if isinstance(error.detail, dict) else {"non_field_errors": error.detail}


def read(request: Request, kind: type[Body]) -> dict[str, Any]:
    """The validated body: keys that were given, and defaults. Raises NotValid, or DRF's ParseError."""
    return check(request.data, kind)


def check(data: Any, kind: type[Body]) -> dict[str, Any]:
    """As :func:`read`, for a part of a body."""
    if not isinstance(data, Mapping):
        raise errors.not_valid("model_attributes_type", ["body"], "Input should be a valid dictionary or object", None)
    _refuse_unstorable(data)
    body = kind(data=data)
    if not body.is_valid():
        raise errors.NotValid(list(_items(body.errors, ["body"], data)))
    return dict(body.validated_data)


def masked(body: dict[str, Any], request: Request, allowed: set[str]) -> dict[str, Any]:
    """The body without the keys that ``update_mask`` leaves out. 400 for a name that the body cannot have."""
    names = [name for raw in request.query_params.getlist("update_mask") for name in raw.split(",") if name]
    if not names:
        return body
    if unknown := sorted(set(names) - allowed):
        raise errors.Problem(
            400, f"Unknown field(s) in update_mask: {', '.join(unknown)}. Use: {', '.join(sorted(allowed))}."
        )
    return {name: value for name, value in body.items() if name in names}


def _refuse_unstorable(data: Any) -> None:
    """NUL and half surrogate pairs are JSON, but no text that PostgreSQL stores."""
    written = json.dumps(data, ensure_ascii=False, default=str)
    try:
        written.encode()
    except UnicodeEncodeError as error:
        raise errors.not_valid("string_unicode", ["body"], "Body holds half a surrogate pair") from error
    if "\\u0000" in written.replace("\\\\", ""):
        raise errors.not_valid("value_error", ["body"], "Body holds a NUL character")


_MESSAGES = {
    "required": ("missing", "Field required"),
    "null": ("none_not_allowed", "Input should not be null"),
    "extra": ("extra_forbidden", "Extra inputs are not permitted"),
    "invalid_choice": ("enum", ""),
    "max_length": ("string_too_long", ""),
    "max_value": ("less_than_equal", ""),
    "min_value": ("greater_than_equal", ""),
}


def _items(found: Any, loc: list[str | int], data: Any) -> Iterator[dict[str, Any]]:
    if isinstance(found, Mapping):
        for key, below in found.items():
            own = loc if key == "non_field_errors" else [*loc, key]
            value = data.get(key) if isinstance(data, Mapping) else None
            yield from _items(below, own, value)
        return
    for place, detail in enumerate(found):
        if isinstance(detail, Mapping):
            if detail:
                yield from _items(detail, [*loc, place], data[place] if isinstance(data, list) else None)
            continue
        code = getattr(detail, "code", "invalid")
        kind, message = _MESSAGES.get(code, (code, ""))
        yield errors.item(kind, loc, message or str(detail), data if _shown(data) else None)


def _shown(value: Any) -> bool:
    """What was wrong is shown again when it is short; never a whole document."""
    return isinstance(value, int | float | bool) or (isinstance(value, str) and len(value) <= 100)
