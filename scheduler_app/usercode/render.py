"""Rendering of an attempt's templated fields, and the form in which they are shown to people."""

from __future__ import annotations

import datetime as dt
from typing import Any

from scheduler_app.sdk.lazy_sequence import LazyXComSequence
from scheduler_app.sdk.serialize import plain

#: texts longer than this are cut in what people see; the task gets them whole
SHOWN_CHARACTERS = 4096


def render(task: Any, context: Any, resolved: set[int]) -> None:
    """Renders the task's fields in place; values whose ids are in ``resolved`` came from XComs and are no templates."""
    task._do_render_template_fields(task, task.template_fields, context, None, set(resolved))


def shown_fields(task: Any) -> dict[str, Any]:
    """Field → JSON for the "rendered" page and API."""
    return {name: _shown(getattr(task, name, None)) for name in task.template_fields}


def _shown(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, LazyXComSequence):
        return repr(value)
    return _cut(plain(_read(value)))


def _read(value: Any) -> Any:
    """Moments and durations as a template would print them, and what a mapped task pushed as a list."""
    if isinstance(value, (dt.date, dt.time, dt.timedelta)):
        return str(value)
    if isinstance(value, (list, tuple, LazyXComSequence)):
        return [_read(item) for item in value]
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    return value


def _cut(value: Any) -> Any:
    if isinstance(value, str) and len(value) > SHOWN_CHARACTERS:
        return f"{value[:SHOWN_CHARACTERS]}… (cut; {len(value)} characters in all)"
    if isinstance(value, list):
        return [_cut(item) for item in value]
    if isinstance(value, dict):
        return {key: _cut(item) for key, item in value.items()}
    return value
