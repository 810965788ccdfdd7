"""``@task.run_if`` and ``@task.skip_if``: a condition, evaluated before the task, that may skip it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_app.sdk.decorators.base import Decorated
from scheduler_app.sdk.exceptions import AirflowSkipException


def run_if(condition: Callable[[Any], Any], skip_message: str | None = None) -> Callable[[Decorated], Decorated]:
    """The task runs if ``condition(context)`` is true (or the first of ``(truth, message)``), else it is skipped."""
    return _decorator(condition, skip_message, skip_when=False)


def skip_if(condition: Callable[[Any], Any], skip_message: str | None = None) -> Callable[[Decorated], Decorated]:
    """The task is skipped if ``condition(context)`` is true."""
    return _decorator(condition, skip_message, skip_when=True)


def _decorator(
    condition: Callable[[Any], Any], message: str | None, *, skip_when: bool
) -> Callable[[Decorated], Decorated]:
    def wrap(decorated: Decorated) -> Decorated:
        if not isinstance(decorated, Decorated):
            raise TypeError(
                f"@task.{'skip_if' if skip_when else 'run_if'} stands above @task: it takes a task, not {decorated!r}."
            )
        before = decorated.kwargs.get("pre_execute")
        decorated.kwargs["pre_execute"] = _Check(condition, message, skip_when, before)
        return decorated

    return wrap


class _Check:
    """A ``pre_execute`` that skips."""

    def __init__(self, condition: Callable[[Any], Any], message: str | None, skip_when: bool, before: Any) -> None:
        self.condition, self.message, self.skip_when, self.before = condition, message, skip_when, before

    def __call__(self, context: Any) -> None:
        answer = self.condition(context)
        truth, message = answer if isinstance(answer, tuple) else (answer, None)
        if bool(truth) == self.skip_when:
            raise AirflowSkipException(message or self.message or "The condition of the task skipped it.")
        if self.before is not None:
            self.before(context)
