"""Python functions as tasks: PythonOperator, branching, short circuits."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from types import FunctionType
from typing import Any

from scheduler_app.sdk.context import current_context, names_for, parameter_kinds
from scheduler_app.sdk.exceptions import AirflowException
from scheduler_app.sdk.operator import BaseOperator
from scheduler_app.sdk.operators.branch import BranchMixIn, SkipMixin, keep_answer
from scheduler_app.sdk.outlet_events import take_metadata


class PythonOperator(BaseOperator):
    """Calls ``python_callable(*op_args, **op_kwargs)``; arguments named like context variables are filled in."""

    template_fields = ("templates_dict", "op_args", "op_kwargs")
    template_fields_renderers = {"templates_dict": "json", "op_args": "py", "op_kwargs": "py"}
    ui_color = "#ffefeb"
    shallow_copy_attrs = ("python_callable", "op_kwargs")

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        templates_dict: dict[str, Any] | None = None,
        templates_exts: Any = None,
        show_return_value_in_logs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not callable(python_callable):
            raise AirflowException(f"python_callable of task {self.task_id!r} is a function, not {python_callable!r}.")
        self.python_callable = python_callable
        self.op_args = op_args if op_args is not None else ()
        self.op_kwargs = op_kwargs if op_kwargs is not None else {}
        self.templates_dict = templates_dict
        if templates_exts:
            self.template_ext = templates_exts
        self.show_return_value_in_logs = show_return_value_in_logs

    def execute(self, context: Any) -> Any:
        merged = {**names_for(context, self.python_callable), **self.op_kwargs, "templates_dict": self.templates_dict}
        self.op_kwargs = call_arguments(self.python_callable, self.op_args, merged, self.op_kwargs)
        value = self.execute_callable()
        if self.show_return_value_in_logs:
            self.log.info("Done. Returned value was: %s", value)
        return value

    def execute_callable(self) -> Any:
        return run_function(self.python_callable, self.op_args, self.op_kwargs)


def call_arguments(
    function: Callable[..., Any], args: Collection[Any], available: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The keyword arguments of a call: what ``function`` names of ``available``, all of it when it takes ``**kwargs``.

    Raises ValueError when a context name is also given by position.
    """
    kinds, kind = parameter_kinds(function), inspect.Parameter
    by_place = (kind.POSITIONAL_ONLY, kind.POSITIONAL_OR_KEYWORD)
    positional = [name for name, its in kinds.items() if its in by_place][: len(args)]
    if kind.VAR_KEYWORD in kinds.values():
        return {name: value for name, value in available.items() if name not in positional}
    by_name = {name for name, its in kinds.items() if its in (kind.POSITIONAL_OR_KEYWORD, kind.KEYWORD_ONLY)}
    chosen = {name: available[name] for name in by_name if name in available and name not in positional}
    return {**chosen, **{name: value for name, value in given.items() if name not in chosen}}


def run_function(function: Callable[..., Any], args: Collection[Any], kwargs: Mapping[str, Any]) -> Any:
    """The result of a plain, async or generator function (whose yielded Metadata describe asset events)."""
    is_coroutine, is_generator = _kind(function)
    if is_coroutine:
        import asyncio  # here: with ssl it makes every fork dearer, and few attempts need it

        return asyncio.run(function(*args, **kwargs))
    if is_generator:
        return take_metadata(function(*args, **kwargs), current_context()["outlet_events"])
    return function(*args, **kwargs)


def _kind(function: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether it is a coroutine function, and whether a generator function; of a plain one its code says it."""
    if type(function) is FunctionType and not function.__dict__:
        flags = function.__code__.co_flags
        return bool(flags & inspect.CO_COROUTINE), bool(flags & inspect.CO_GENERATOR)
    return inspect.iscoroutinefunction(function), inspect.isgeneratorfunction(function)


class BranchPythonOperator(PythonOperator, BranchMixIn):
    """The function returns the id (or ids) of what runs next; the other children are skipped."""

    inherits_from_skipmixin = True

    def choose_branch(self, context: Any) -> Any:
        return PythonOperator.execute(self, context)

    def execute(self, context: Any) -> Any:
        chosen = PythonOperator.execute(self, context)
        keep_answer(self, context, chosen)
        return self.do_branch(context, chosen)


class ShortCircuitOperator(PythonOperator, SkipMixin):
    """A false result skips what comes after: everything, or the direct children when trigger rules are to be
    respected."""

    inherits_from_skipmixin = True

    def __init__(self, *, ignore_downstream_trigger_rules: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ignore_downstream_trigger_rules = ignore_downstream_trigger_rules

    def execute(self, context: Any) -> Any:
        condition = PythonOperator.execute(self, context)
        if condition:
            self.log.info("The condition is true: what comes after goes on.")
            return condition
        keep_answer(self, context, condition)
        below = (
            self.get_flat_relatives(upstream=False) if self.ignore_downstream_trigger_rules else self.downstream_list
        )
        self.log.info("The condition is false: %d task(s) are skipped.", len(below))
        self.skip(context["ti"], below)
        return condition


def get_current_context() -> Any:
    """The context of the running task. Raises RuntimeError outside of one."""
    return current_context()


def __getattr__(name: str) -> Any:
    if name in (
        "PythonVirtualenvOperator",
        "ExternalPythonOperator",
        "BranchPythonVirtualenvOperator",
        "BranchExternalPythonOperator",
    ):
        from scheduler_app.sdk.operators import virtualenv

        return getattr(virtualenv, name)
    raise AttributeError(name)
