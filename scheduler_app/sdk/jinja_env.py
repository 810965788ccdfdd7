"""The Jinja environment of templates: sandboxed, strict about unknown names, with the date filters."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nativetypes
import jinja2.sandbox


class _Sandbox(jinja2.sandbox.SandboxedEnvironment):
    """Templates may use names with one underscore of the objects they are given, but no dunder attributes."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return not jinja2.sandbox.is_internal_attribute(obj, attr)


class _Native(jinja2.nativetypes.NativeEnvironment, _Sandbox):
    """As above; a rendered template becomes the Python value it spells."""


def environment(
    *,
    native: bool = False,
    search_path: Sequence[str] = (),
    undefined: type[jinja2.Undefined] | None = None,
    macros: Mapping[str, Any] | None = None,
    filters: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
) -> jinja2.Environment:
    """An environment that loads template files from ``search_path`` and knows the date filters."""
    settings: dict[str, Any] = {
        "loader": jinja2.FileSystemLoader(list(search_path)),
        "undefined": undefined or jinja2.StrictUndefined,
        "extensions": ["jinja2.ext.do"],
        "cache_size": 0,
    }
    settings.update(options or {})
    env = (_Native if native else _Sandbox)(**settings)
    env.filters.update(FILTERS)
    env.globals.update(macros or {})
    env.filters.update(filters or {})
    return env


def render(template: jinja2.Template, context: Mapping[str, Any], env: jinja2.Environment) -> Any:
    """Text, or with a native environment the value that the template spells."""
    values = template.new_context({**getattr(context, "older", {}), **context})
    nodes = template.root_render_func(values)
    if isinstance(env, jinja2.nativetypes.NativeEnvironment):
        try:
            return jinja2.nativetypes.native_concat(nodes)
        except Exception:
            env.handle_exception()
    try:
        return "".join(nodes)
    except Exception:
        env.handle_exception()


def ds_filter(value: dt.datetime | None) -> str | None:
    return None if value is None else value.strftime("%Y-%m-%d")


def ds_nodash_filter(value: dt.datetime | None) -> str | None:
    return None if value is None else value.strftime("%Y%m%d")


def ts_filter(value: dt.datetime | None) -> str | None:
    return None if value is None else value.isoformat()


def ts_nodash_filter(value: dt.datetime | None) -> str | None:
    return None if value is None else value.strftime("%Y%m%dT%H%M%S")


def ts_nodash_with_tz_filter(value: dt.datetime | None) -> str | None:
    return None if value is None else value.isoformat().replace("-", "").replace(":", "")


FILTERS = {
    "ds": ds_filter,
    "ds_nodash": ds_nodash_filter,
    "ts": ts_filter,
    "ts_nodash": ts_nodash_filter,
    "ts_nodash_with_tz": ts_nodash_with_tz_filter,
}
