"""Going on after a deferral."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk.exceptions import TaskDeferralError, TaskDeferralTimeout

#: the method name under which the trigger's own failure is delivered
FAIL = "__fail__"
TIMEOUT = "Trigger timeout"


def resume(task: Any, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
    """Calls the method that the deferral named, with its kwargs and the trigger's event.

    Raises TaskDeferralTimeout or TaskDeferralError when the trigger did not fire.
    """
    kwargs = dict(next_kwargs or {})
    if next_method == FAIL:
        reason = kwargs.get("error", "Unknown")
        trace = kwargs.get("traceback")
        if trace:
            task.log.error("The trigger failed:\n%s", "\n".join(trace) if isinstance(trace, list) else trace)
        if reason == TIMEOUT:
            raise TaskDeferralTimeout(reason)
        raise TaskDeferralError(reason)
    method = getattr(task, next_method, None)
    if method is None:
        raise AttributeError(
            f"Task {task.task_id!r} was deferred to {next_method!r}, but {type(task).__name__} has no such method."
        )
    return method(context, **kwargs)
