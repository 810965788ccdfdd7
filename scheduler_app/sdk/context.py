"""The context of a running task: a dict with Airflow's names; ``current_context`` gives it anywhere in task code."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any


class Context(dict[str, Any]):
    """Names → values. A name that the run does not have raises KeyError that lists what there is.

    ``older`` holds names of Airflow 2: found by whoever asks for one, but in no list of the names.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.older: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(key, self.older.get(key, default))

    def __missing__(self, key: str) -> Any:
        from scheduler_app.sdk.nearest import did_you_mean

        if key in self.older:
            return self.older[key]
        raise KeyError(f"The context has no {key!r} in this run.{did_you_mean(str(key), self)}")


def names_for(context: Any, function: Callable[..., Any]) -> dict[str, Any]:
    """What a function may take from the context: its names, and those of the older ones that it spells out."""
    older = getattr(context, "older", {})
    named = parameter_kinds(function) if older else {}
    return {**{name: older[name] for name in older if name in named}, **context}


def parameter_kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """Parameter → its kind (``inspect.Parameter.KEYWORD_ONLY`` …), in order.

    A plain function is read from its code, as ``inspect.signature`` does in the end, at a fraction of the price.
    """
    if type(function) is not FunctionType or "__wrapped__" in function.__dict__ or "__signature__" in function.__dict__:
        return {name: parameter.kind for name, parameter in inspect.signature(function).parameters.items()}
    code, kind = function.__code__, inspect.Parameter
    names, only, by_place = code.co_varnames, code.co_posonlyargcount, code.co_argcount
    last = by_place + code.co_kwonlyargcount
    kinds = dict.fromkeys(names[:only], kind.POSITIONAL_ONLY)
    kinds |= dict.fromkeys(names[only:by_place], kind.POSITIONAL_OR_KEYWORD)
    more = names[last:]
    if code.co_flags & inspect.CO_VARARGS:
        kinds[more[0]] = kind.VAR_POSITIONAL
        more = more[1:]
    kinds |= dict.fromkeys(names[by_place:last], kind.KEYWORD_ONLY)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        kinds[more[0]] = kind.VAR_KEYWORD
    return kinds


_contexts: list[Any] = []


@contextlib.contextmanager
def set_current_context(context: Any) -> Iterator[Any]:
    """Makes ``context`` the current one inside the block."""
    _contexts.append(context)
    try:
        yield context
    finally:
        _contexts.pop()


def current_context() -> Any:
    """Raises RuntimeError outside of a running task."""
    if not _contexts:
        raise RuntimeError(
            "There is no current context: get_current_context() works inside a running task, not while the DAG "
            "file is read."
        )
    return _contexts[-1]


def get_current_context() -> Any:
    """The context of the running task. Raises RuntimeError outside of one."""
    return current_context()


def context_merge(context: Any, *additions: Any, **kwargs: Any) -> None:
    """Adds names to a context."""
    for addition in additions:
        context.update(addition)
    context.update(kwargs)
