"""The context of a running task: a dict with Airflow's names; ``current_context`` gives it anywhere in task code."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any


class Context(dict[str, Any]):
    """Names → values. A name that the run does not have raises KeyError that lists what there is.

    ``older`` holds names of Airflow 2: found by whoever asks for one, but in no list of the names.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.older: dict[str, Any] = {}
        self._later: Mapping[str, Callable[[Any], Any]] = {}
        self._of: Any = None

    def promise(self, later: Mapping[str, Callable[[Any], Any]], of: Any) -> None:
        """More names, whose values ``later`` makes of ``of`` when one is first asked for.

        Most attempts use two or three of thirty. Whatever concerns them all (a loop, a copy, ``**context``) makes them.
        """
        self._later, self._of = later, of

    def get(self, key: str, default: Any = None) -> Any:
        return self[key] if key in self or key in self.older else default

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or key in self._later

    def __missing__(self, key: str) -> Any:
        if key in self._later:
            value = self[key] = self._later[key](self._of)
            return value
        if key in self.older:
            return self.older[key]
        from scheduler_app.sdk.nearest import did_you_mean

        raise KeyError(f"The context has no {key!r} in this run.{did_you_mean(str(key), self)}")

    def _complete(self) -> None:
        later, self._later = self._later, {}
        for name, make in later.items():
            if not super().__contains__(name):
                self[name] = make(self._of)


def _of_all(name: str) -> Callable[..., Any]:
    """A method of dict for which no name may be missing."""
    method = getattr(dict, name)

    @functools.wraps(method)
    def complete(self: Context, *args: Any, **kwargs: Any) -> Any:
        self._complete()
        return method(self, *args, **kwargs)

    return complete


# With ``__iter__`` among them, C code that copies a dict (``**context``, ``dict(context)``) comes here too.
for _name in (
    *("__iter__", "__reversed__", "__len__", "__eq__", "__ne__", "__repr__", "__or__", "__ror__", "__delitem__"),
    *("clear", "copy", "items", "keys", "pop", "popitem", "setdefault", "values"),
):
    setattr(Context, _name, _of_all(_name))


def names_for(context: Any, function: Callable[..., Any]) -> dict[str, Any]:
    """What a function may take from the context: those of its names, older ones too, that it spells out, or all."""
    kinds = parameter_kinds(function)
    older = getattr(context, "older", {})
    if inspect.Parameter.VAR_KEYWORD in kinds.values():
        return {**{name: older[name] for name in older if name in kinds}, **context}
    return {name: context[name] for name in kinds if name in context or name in older}


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


class set_current_context:  # noqa: N801 - it is used as a function
    """Makes ``context`` the current one inside the block."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __enter__(self) -> Any:
        _contexts.append(self._context)
        return self._context

    def __exit__(self, *error: object) -> None:
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
