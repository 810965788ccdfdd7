"""``macros`` of templates: dates in and out of texts, and a few modules of the standard library."""

from __future__ import annotations

import datetime as _dt
import json
import time
import uuid
from datetime import datetime, timedelta
from random import choice, random
from typing import Any

__all__ = [
    "datetime",
    "datetime_diff_for_humans",
    "dateutil",
    "ds_add",
    "ds_format",
    "ds_format_locale",
    "json",
    "random",
    "time",
    "timedelta",
    "uuid",
]


def ds_add(ds: str, days: int) -> str:
    """The day (YYYY-MM-DD) that lies ``days`` after (or before) the day ``ds``."""
    return (_dt.datetime.strptime(str(ds), "%Y-%m-%d") + _dt.timedelta(days=days)).strftime("%Y-%m-%d")


def ds_format(ds: str, input_format: str, output_format: str) -> str:
    """A date text in another format."""
    return _dt.datetime.strptime(str(ds), input_format).strftime(output_format)


def ds_format_locale(ds: str, input_format: str, output_format: str, locale: Any = None) -> str:
    """As :func:`ds_format`; the output format is Babel's. Needs the package babel."""
    from babel.dates import format_datetime

    return format_datetime(_dt.datetime.strptime(str(ds), input_format), format=output_format, locale=locale)


def datetime_diff_for_humans(dt: Any, since: Any = None) -> str:
    """ "2 days ago", or "2 days before" relative to ``since``."""
    import pendulum

    return pendulum.instance(dt).diff_for_humans(None if since is None else pendulum.instance(since))


def random_choice(items: Any) -> Any:
    return choice(items)


def __getattr__(name: str) -> Any:
    if name == "dateutil":
        import dateutil.parser
        import dateutil.relativedelta

        return dateutil
    raise AttributeError(name)
