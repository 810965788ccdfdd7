"""``@setup`` and ``@teardown``, on functions and on ``@task`` functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_app.sdk.decorators.base import Decorated
from scheduler_app.sdk.decorators.group import GroupFactory
from scheduler_app.sdk.decorators.task import task
from scheduler_app.sdk.exceptions import AirflowException


def _as_task(function: Callable[..., Any]) -> Decorated:
    if isinstance(function, GroupFactory):
        raise AirflowException("Task groups cannot be marked as setup or teardown.")
    return function if isinstance(function, Decorated) else task(function)


def setup(function: Callable[..., Any]) -> Decorated:
    """The tasks of this function are setups."""
    decorated = _as_task(function)
    decorated.is_setup = True
    return decorated


def teardown(function: Callable[..., Any] | None = None, *, on_failure_fail_dagrun: bool = False) -> Any:
    """The tasks of this function are teardowns; ``on_failure_fail_dagrun``: their failure fails the run."""

    def wrap(inner: Callable[..., Any]) -> Decorated:
        decorated = _as_task(inner)
        decorated.is_teardown = True
        decorated.on_failure_fail_dagrun = on_failure_fail_dagrun
        return decorated

    return wrap if function is None else wrap(function)
