"""Reading the arguments of operators and DAGs, with errors that say what to do."""

from __future__ import annotations

import datetime as dt
import inspect
from collections.abc import Callable
from typing import Any

from scheduler_app.sdk.nearest import did_you_mean

#: Arguments of Airflow 2 that tasks no longer take, and what replaces them.
REMOVED_TASK_ARGUMENTS: dict[str, str] = {
    "task_concurrency": "max_active_tis_per_dag",
    "provide_context": "nothing: context variables are passed to functions that name them",
    "execution_date": "logical_date",
    "dataset": "outlets",
}


def init_parameters(operator_class: type) -> set[str]:
    """Names of all keyword arguments that some ``__init__`` of the class takes."""
    names: set[str] = set()
    for level in operator_class.__mro__:
        init = level.__dict__.get("__init__")
        if init is not None and level is not object:
            parameters = inspect.signature(getattr(init, "_wrapped_init", init)).parameters.values()
            names.update(p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
    return names - {"self"}


def reject_unknown(operator_class: type, task_id: str, unknown: dict[str, Any]) -> None:
    """Raises TypeError that names the unknown arguments and the nearest known ones."""
    if not unknown:
        return
    known = init_parameters(operator_class)
    parts = []
    for name in unknown:
        instead = REMOVED_TASK_ARGUMENTS.get(name)
        parts.append(f"{name!r} (removed; use {instead})" if instead else f"{name!r}.{did_you_mean(name, known)}")
    raise TypeError(f"{operator_class.__name__} (task {task_id!r}) does not take the argument(s) {' '.join(parts)}")


def missing_arguments(operator_class: type, level: type, missing: list[str], given: dict[str, Any]) -> str:
    """The text of the error for required arguments that were not given; a mistyped one among those given is named."""
    task = f" (task {given['task_id']!r})" if isinstance(given.get("task_id"), str) else ""
    unknown = sorted(set(given) - init_parameters(operator_class))
    hints = "".join(f" It was given {name!r}.{did_you_mean(name, missing)}" for name in unknown)
    return f"{level.__name__}{task} misses the keyword argument(s) {', '.join(map(repr, missing))}.{hints}"


def as_delay(value: Any, name: str, task_id: str) -> dt.timedelta:
    """A timedelta; numbers are seconds. Raises TypeError."""
    if isinstance(value, dt.timedelta):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return dt.timedelta(seconds=value)
    raise TypeError(f"{name} of task {task_id!r} is a timedelta (or seconds), not {value!r}.")


def as_seconds_factor(value: bool | float) -> float:
    """``retry_exponential_backoff`` as a factor: false → 0 (constant delay), true → 2."""
    return 2.0 if value is True else float(value or 0)


def as_pool_slots(value: int, task_id: str) -> int:
    if int(value) < 1:
        raise ValueError(f"pool_slots of task {task_id!r} is {value!r}: a task takes one slot or more.")
    return int(value)


def as_callbacks(value: Any, name: str, task_id: str) -> list[Callable[..., Any]]:
    """A list of callables; one callable is a list of one. Raises TypeError."""
    if value is None:
        return []
    callbacks = list(value) if isinstance(value, (list, tuple, set)) else [value]
    for callback in callbacks:
        if not callable(callback):
            raise TypeError(
                f"{name} of {task_id!r} is a function (or a list of them), not {callback!r}: give the function itself."
            )
    return callbacks
