"""``@task_group``: a function that makes a group each time it is called."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app.sdk.mapping import DictsInput, ProductInput, check_dicts, check_mappable
from scheduler_app.sdk.nearest import did_you_mean
from scheduler_app.sdk.task_group import MappedArgument, MappedTaskGroup, TaskGroup
from scheduler_app.sdk.xcom_arg import XComArg

_KNOWN = set(inspect.signature(TaskGroup.__init__).parameters) - {"self"}


class GroupFactory:
    """What ``@task_group`` leaves in place of a function."""

    def __init__(
        self, function: Callable[..., Any], group_kwargs: dict[str, Any], constants: dict[str, Any] | None = None
    ) -> None:
        for name in group_kwargs:
            if name not in _KNOWN:
                raise TypeError(f"@task_group does not take {name!r}.{did_you_mean(name, _KNOWN)}")
        self.function, self.group_kwargs, self.constants = function, group_kwargs, dict(constants or {})
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<@task_group {self.function.__name__}>"

    def _kwargs(self) -> dict[str, Any]:
        kwargs = {"group_id": self.function.__name__, "add_suffix_on_collision": True, **self.group_kwargs}
        if not kwargs.get("tooltip") and self.function.__doc__:
            kwargs["tooltip"] = inspect.cleandoc(self.function.__doc__)
        return kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with TaskGroup(**self._kwargs()) as group:
            result = self.function(*args, **kwargs)
        return _result(group, result)

    def override(self, **kwargs: Any) -> GroupFactory:
        return GroupFactory(self.function, {**self.group_kwargs, **kwargs}, self.constants)

    def partial(self, **kwargs: Any) -> GroupFactory:
        self._check_names("partial", kwargs)
        return GroupFactory(self.function, self.group_kwargs, {**self.constants, **kwargs})

    def expand(self, **mapped: Any) -> Any:
        """One instance of the group for each combination of the elements."""
        if not mapped:
            raise TypeError("expand() needs an argument to map over: call the function for a plain group.")
        self._check_names("expand", mapped)
        for name, value in mapped.items():
            if name in self.constants:
                raise TypeError(f"{name!r} is given to partial() and to expand(): choose one.")
            check_mappable("expand", name, value)
        return self._expand(ProductInput(mapped), list(mapped))

    def expand_kwargs(self, kwargs: Any) -> Any:
        """One instance of the group for each dict of arguments; the dicts name every argument without a default."""
        check_mappable("expand_kwargs", "kwargs", kwargs)
        check_dicts(kwargs)
        if isinstance(kwargs, XComArg):
            names = [
                name
                for name, parameter in inspect.signature(self.function).parameters.items()
                if name not in self.constants and parameter.default is inspect.Parameter.empty
            ]
        else:
            names = list(dict.fromkeys(name for item in kwargs for name in item))
        return self._expand(DictsInput(kwargs), names)

    def _expand(self, expand_input: Any, names: list[str]) -> Any:
        with MappedTaskGroup(expand_input=expand_input, **self._kwargs()) as group:
            arguments = {name: MappedArgument(expand_input, name) for name in names}
            result = self.function(**self.constants, **arguments)
        return _result(group, result)

    def _check_names(self, method: str, kwargs: Mapping[str, Any]) -> None:
        parameters = inspect.signature(self.function).parameters
        if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
            return
        for name in kwargs:
            if name not in parameters:
                raise TypeError(f"{self.function.__name__}() has no argument {name!r}, which {method}() was given.")


def _result(group: TaskGroup, result: Any) -> Any:
    """What a call of the function gives: what it returned, so that edges bind to that, else the group."""
    return group if result is None else result


def task_group(function: Any = None, **kwargs: Any) -> Any:
    """``@task_group`` or ``@task_group(group_id=…, default_args=…, …)``."""
    if function is None:
        return lambda inner: GroupFactory(inner, kwargs)
    if not callable(function):
        raise TypeError(f"@task_group takes keyword arguments; got {function!r}.")
    return GroupFactory(function, kwargs)
