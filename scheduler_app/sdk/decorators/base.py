"""A function as a task: the operator mixin that holds it, and the object that ``@task`` leaves in its place."""

from __future__ import annotations

import functools
import inspect
import re
import typing
from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app.sdk import scope
from scheduler_app.sdk.context_keys import CONTEXT_KEYS
from scheduler_app.sdk.exceptions import AirflowException
from scheduler_app.sdk.mapped import MappedOperator, OperatorPartial
from scheduler_app.sdk.mapping import DictsInput, ProductInput, check_dicts, check_mappable
from scheduler_app.sdk.operator import BaseOperator
from scheduler_app.sdk.xcom_arg import NOTSET, XComArg


def free_task_id(task_id: str, dag: Any, group: Any) -> str:
    """``task_id``, or ``task_id__1`` and so on when the DAG has it: a function may be called several times."""
    dag = dag or scope.current_dag() or (group.dag if group is not None else None)
    if dag is None:
        return task_id
    group = group or scope.current_group(dag)
    full = group.child_id if group is not None else str
    if full(task_id) not in dag.task_dict and full(task_id) not in dag.task_group.used_group_ids:
        return task_id
    base = re.split(r"__\d+$", task_id)[0]
    number = 1
    while full(f"{base}__{number}") in dag.task_dict:
        number += 1
    return f"{base}__{number}"


def infer_multiple_outputs(function: Callable[..., Any]) -> bool:
    """A function annotated to return a dict pushes each key as an XCom of its own."""
    annotation = getattr(function, "__annotations__", {}).get("return")
    if isinstance(annotation, str):
        try:
            annotation = typing.get_type_hints(function).get("return")
        except Exception:
            # a name that only type checkers import: the outermost word decides
            return re.match(r"(typing\.|t\.)?(dict|Dict|Mapping|MutableMapping)\b", str(annotation)) is not None
    origin = typing.get_origin(annotation) or annotation
    return isinstance(origin, type) and issubclass(origin, Mapping)


def check_function(function: Any, name: str) -> None:
    """Raises TypeError for what is no function, ValueError for a context name with a default that is not None."""
    if not callable(function):
        raise TypeError(f"{name} decorates a function, not {function!r}.")
    if isinstance(function, (staticmethod, classmethod)) or "self" in inspect.signature(function).parameters:
        raise TypeError(f"{name} decorates plain functions, not methods; {function!r} has the argument 'self'.")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in CONTEXT_KEYS and parameter.default not in (None, inspect.Parameter.empty):
            raise ValueError(
                f"The argument {parameter.name!r} of {function.__qualname__}() is filled from the context, so its "
                "default can "
                f"only be None, not {parameter.default!r}: write {parameter.name}=None, or rename it."
            )


class DecoratedOperator(BaseOperator):
    """Mixed into operators that hold a decorated function. ``op_args`` and ``op_kwargs`` are what it was called
    with."""

    custom_operator_name: str = "@task"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        task_id: str,
        op_args: Any = None,
        op_kwargs: Any = None,
        kwargs_to_upstream: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if not self.__dict__.get("_detached"):
            task_id = free_task_id(task_id, kwargs.get("dag"), kwargs.get("task_group"))
        self.python_callable = python_callable
        self.op_args = list(op_args or ())
        self.op_kwargs = dict(op_kwargs or {})
        self._bind()
        super().__init__(task_id=task_id, **{**(kwargs_to_upstream or {}), **kwargs})

    def _bind(self) -> None:
        """Raises TypeError now for a call that could not work later; names of the context need no value."""
        signature = inspect.signature(self.python_callable)
        filled = [
            parameter.replace(default=None)
            if parameter.name in CONTEXT_KEYS
            and parameter.default is inspect.Parameter.empty
            and parameter.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
            else parameter
            for parameter in signature.parameters.values()
        ]
        try:
            _with_legal_defaults(signature, filled).bind(*self.op_args, **self.op_kwargs)
        except TypeError as error:
            raise TypeError(f"{self.python_callable.__name__}(): {error}") from None

    def get_python_source(self) -> str:
        return inspect.getsource(self.python_callable)


def _with_legal_defaults(signature: inspect.Signature, parameters: list[inspect.Parameter]) -> inspect.Signature:
    """A required argument after one with a default is legal for a call by name; the signature is loosened for that."""
    seen, loosened = False, []
    for parameter in parameters:
        positional = parameter.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        if positional and seen and parameter.default is inspect.Parameter.empty:
            parameter = parameter.replace(default=None)
        seen = seen or (positional and parameter.default is not inspect.Parameter.empty)
        loosened.append(parameter)
    return signature.replace(parameters=loosened)


class Decorated:
    """What ``@task`` leaves in place of a function: calling it makes a task and gives its result as an XComArg."""

    _is_task_decorator = True

    def __init__(
        self, function: Callable[..., Any], operator_class: type[DecoratedOperator], kwargs: dict[str, Any], name: str
    ) -> None:
        check_function(function, name)
        self.function, self.operator_class, self.name = function, operator_class, name
        self.kwargs = dict(kwargs)
        self.multiple_outputs = self.kwargs.pop("multiple_outputs", None)
        self.is_setup = self.is_teardown = False
        self.on_failure_fail_dagrun = False
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<{self.name} {self.function.__name__}>"

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    @__wrapped__.setter
    def __wrapped__(self, value: Callable[..., Any]) -> None:
        """Set by functools.update_wrapper; the function is kept already."""

    def _operator_kwargs(self) -> dict[str, Any]:
        kwargs = {"task_id": self.function.__name__, **self.kwargs}
        if self.multiple_outputs is not None:
            kwargs["multiple_outputs"] = bool(self.multiple_outputs)
        elif infer_multiple_outputs(self.function):
            kwargs["multiple_outputs"] = True
        if "doc_md" not in kwargs and self.function.__doc__:
            kwargs["doc_md"] = inspect.cleandoc(self.function.__doc__)
        return kwargs

    def __call__(self, *args: Any, **kwargs: Any) -> XComArg:
        if self.is_teardown and "trigger_rule" in self.kwargs:
            raise ValueError("A teardown cannot have a trigger rule of its own: leave out trigger_rule.")
        operator = self.operator_class(
            python_callable=self.function, op_args=args, op_kwargs=kwargs, **self._operator_kwargs()
        )
        self._mark(operator)
        return XComArg(operator)

    def _mark(self, operator: Any) -> None:
        operator.is_setup = operator.is_setup or self.is_setup
        if self.is_teardown:
            operator.as_teardown(setups=None, on_failure_fail_dagrun=self.on_failure_fail_dagrun)

    def override(self, **kwargs: Any) -> Decorated:
        """The same function with other task arguments."""
        merged = {**self.kwargs, **kwargs}
        if self.multiple_outputs is not None and "multiple_outputs" not in kwargs:
            merged["multiple_outputs"] = self.multiple_outputs
        made = type(self)(self.function, self.operator_class, merged, self.name)
        made.is_setup, made.is_teardown = self.is_setup, self.is_teardown
        made.on_failure_fail_dagrun = kwargs.pop("on_failure_fail_dagrun", self.on_failure_fail_dagrun)
        made.kwargs.pop("on_failure_fail_dagrun", None)
        return made

    def partial(self, **kwargs: Any) -> Decorated:
        """Constant arguments of the function, for a mapped call."""
        self._check_names("partial", kwargs)
        known = self.kwargs.get("op_kwargs", {})
        clash = set(known) & set(kwargs)
        if clash:
            raise TypeError(f"partial() got {sorted(clash)} twice.")
        return self.override(op_kwargs={**known, **kwargs})

    def expand(self, **mapped: Any) -> XComArg:
        """One task instance for each combination of the elements."""
        if self.kwargs.get("trigger_rule") == "always":
            raise ValueError(
                "A mapped task cannot have the trigger rule 'always': it needs its upstreams to know its length."
            )
        if not mapped:
            raise TypeError("expand() needs an argument to map over: call the function for a plain task.")
        self._check_names("expand", mapped)
        for name, value in mapped.items():
            if name in self.kwargs.get("op_kwargs", {}):
                raise TypeError(f"{name!r} is given to partial() and to expand(): choose one.")
            check_mappable("expand", name, value)
        return self._expand(ProductInput(mapped))

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> XComArg:
        """One task instance for each dict of arguments."""
        check_mappable("expand_kwargs", "kwargs", kwargs)
        check_dicts(kwargs)
        return self._expand(DictsInput(kwargs))

    def _check_names(self, method: str, kwargs: Mapping[str, Any]) -> None:
        parameters = inspect.signature(self.function).parameters
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        for name in kwargs:
            if name not in parameters and not takes_any:
                raise TypeError(f"{self.function.__name__}() has no argument {name!r}, which {method}() was given.")
            if name in CONTEXT_KEYS and method == "expand":
                raise ValueError(f"{name!r} is filled from the context and cannot be mapped over: rename the argument.")

    def _expand(self, expand_input: Any) -> XComArg:
        kwargs = self._operator_kwargs()
        op_kwargs = kwargs.pop("op_kwargs", {})
        kwargs["task_id"] = free_task_id(kwargs["task_id"], kwargs.get("dag"), kwargs.get("task_group"))
        partial = OperatorPartial(self.operator_class, kwargs)
        operator = DecoratedMappedOperator(
            self.operator_class,
            {**partial.kwargs, "python_callable": self.function, "op_kwargs": op_kwargs},
            expand_input,
        )
        self._mark(operator)
        return XComArg(operator)


class DecoratedMappedOperator(MappedOperator):
    """A mapped function: what is mapped are the function's arguments, not the operator's."""

    def _merge(self, kwargs: dict[str, Any], values: dict[str, Any]) -> tuple[dict[str, Any], set[int]]:
        constant = kwargs.get("op_kwargs") or {}
        clash = set(constant) & set(values)
        if clash:
            raise TypeError(
                f"Task {self.task_id!r} got {sorted(clash)} from partial() and from expand_kwargs(): choose one."
            )
        return {**kwargs, "op_kwargs": {**constant, **values}}, set()


def make_decorator(operator_class: type[DecoratedOperator], name: str) -> Callable[..., Any]:
    """A decorator that works with and without parentheses."""

    def decorate(python_callable: Any = None, **kwargs: Any) -> Any:
        if python_callable is not None and not callable(python_callable):
            raise TypeError(f"{name} takes keyword arguments; got {python_callable!r}.")
        if python_callable is not None:
            return Decorated(python_callable, operator_class, kwargs, name)
        return lambda function: Decorated(function, operator_class, kwargs, name)

    decorate.__name__ = name
    return decorate


def need_text(value: Any, name: str) -> str:
    """What ``@task.bash`` and its kin return. Raises TypeError."""
    if not isinstance(value, str) or not value.strip():
        raise TypeError(f"A function decorated with {name} returns a non-empty text; it returned {value!r}.")
    return value


__all__ = ["NOTSET", "AirflowException", "Decorated", "DecoratedOperator", "make_decorator"]
