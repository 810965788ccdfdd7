"""XCom values as Airflow's API shows them: what is more than JSON names its class, its version and its data."""

from __future__ import annotations

import datetime as dt
import decimal
import zoneinfo
from collections.abc import Callable
from typing import Any

from scheduler_app import wire

Json = Any

_SEQUENCES = {"tuple": "builtins.tuple", "set": "builtins.set", "frozenset": "builtins.frozenset"}
_FIXED, _NAMED = "pendulum.tz.timezone.FixedTimezone", "pendulum.tz.timezone.Timezone"


def shown(document: Json) -> Json:
    """The value of a stored document (``wire.encode``) in the form in which Airflow 3 gives it to clients."""
    if isinstance(document, list):
        return [shown(item) for item in document]
    if not isinstance(document, dict):
        return document
    if wire.TYPE not in document:
        return {key: shown(item) for key, item in document.items()}
    kind, value = document[wire.TYPE], document[wire.VALUE]
    if kind in _SEQUENCES:
        return _described(_SEQUENCES[kind], 1, [shown(item) for item in value])
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if kind in ("dataclass", "attrs", "pydantic"):
        return _described(value["class"], 1 if kind == "pydantic" else 0, shown(value["data"]))
    if kind == "asset":
        return _described("airflow.sdk.definitions.asset.Asset", 1, shown(value))
    return wire.plain(document)


def _described(name: str, version: int, data: Json) -> Json:
    return {"__classname__": name, "__version__": version, "__data__": data}


def _datetime(text: str) -> Json:
    return _moment("datetime.datetime", dt.datetime.fromisoformat(text), None)


def _pendulum(text: str) -> Json:
    at, _, zone = text.rstrip("]").partition("[")
    moment = dt.datetime.fromisoformat(at)
    name = zone or ("UTC" if moment.tzinfo is not None and not moment.utcoffset() else None)
    return _moment("pendulum.datetime.DateTime", moment, name)


def _moment(kind: str, moment: dt.datetime, zone: str | None) -> Json:
    tz: Json = None
    if zone is not None:
        tz = _described("builtins.tuple", 1, [zone, _NAMED, 1, True])
    elif moment.tzinfo is not None:
        offset = moment.utcoffset() or dt.timedelta()
        name: Json = int(offset.total_seconds()) if offset else "UTC"
        tz = _described("builtins.tuple", 1, [name, _FIXED, 1, True])
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zoneinfo.ZoneInfo("UTC"))
    return _described(kind, 2, {"timestamp": aware.timestamp(), "tz": tz})


def _decimal(text: str) -> Json:
    value = decimal.Decimal(text)
    if not value.is_finite():
        return text
    return _described("decimal.Decimal", 1, int(value) if value == value.to_integral_value() else float(value))


_SCALARS: dict[str, Callable[[Any], Json]] = {
    "datetime": _datetime,
    "moment": _pendulum,
    "date": lambda text: _described("datetime.date", 2, text),
    "timedelta": lambda seconds: _described("datetime.timedelta", 2, seconds),
    "decimal": _decimal,
    "uuid": lambda text: _described("uuid.UUID", 1, text),
}
