"""What an exception means for a task: a table from its class to the outcome document."""

from __future__ import annotations

import datetime as dt
import logging
import traceback
from collections.abc import Callable
from typing import Any

from scheduler_app.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    DownstreamTasksSkipped,
    TaskDeferred,
    UnmappableXComLengthPushed,
    UnmappableXComTypePushed,
    XComForMappingNotPushed,
)
from scheduler_app.usercode import resources, results
from scheduler_app.wire import encode

log = logging.getLogger("airflow.task")
Outcome = dict[str, Any]


def of_success(task: Any, context: Any, value: Any, port: Any) -> Outcome:
    """Pushes the result and gives the outcome; a result that cannot be pushed makes it a failure."""
    try:
        results.render_map_index(task, context)
        length = results.push_result(task, value, port, context["ti"].map_index)
        outcome = {"op": "outcome", **results.success_document(task, context, length)}
    except Exception as error:
        return of_exception(error, task, context)
    return {**outcome, **results.map_index_of(context)}


def of_exception(error: BaseException, task: Any, context: Any) -> Outcome:
    """The outcome of an attempt that ended with ``error``."""
    for kinds, outcome in MEANINGS:
        if isinstance(error, kinds):
            return {"op": "outcome", **_guarded(outcome, error, task, context), **results.map_index_of(context)}
    return {"op": "outcome", **_failed(error, task, context), **results.map_index_of(context)}


def _guarded(outcome: Callable[..., Outcome], error: BaseException, task: Any, context: Any) -> Outcome:
    """An outcome that cannot be written down (a deferral with values that cannot cross) is a failure that says so."""
    try:
        return outcome(error, task, context)
    except Exception as second:
        return _failed(second, task, context)


def _skipped(error: Any, task: Any, context: Any) -> Outcome:
    log.info("The task is skipped: %s", error or "it raised AirflowSkipException")
    return {"state": "skipped"}


def _rescheduled(error: Any, task: Any, context: Any) -> Outcome:
    log.info("The task ends for now and begins again at %s.", error.reschedule_date)
    return {"state": "up_for_reschedule", "reschedule_at": _instant(error.reschedule_date)}


def _deferred(error: Any, task: Any, context: Any) -> Outcome:
    classpath, kwargs = error.trigger.serialize()
    log.info("The task waits for the trigger %s.", classpath)
    return {
        "state": "deferred",
        "defer": {
            "classpath": classpath,
            "kwargs": encode(kwargs, "trigger"),
            "next_method": error.method_name,
            "next_kwargs": encode(error.kwargs or {}, "kwargs"),
            "timeout": None if error.timeout is None else error.timeout.total_seconds(),
        },
    }


def _skips_others(error: Any, task: Any, context: Any) -> Outcome:
    skips = [list(item) if isinstance(item, tuple) else item for item in error.tasks]
    return {**results.success_document(task, context), "skip": skips}


def _failed(error: BaseException, task: Any, context: Any) -> Outcome:
    described = describe(error)
    described["message"] = resources.explained(error, described["message"])
    log.error(
        "The task failed: %s",
        described["message"] or described["type"],
        exc_info=(type(error), error, own_frames(error)),
    )
    outcome: Outcome = {"state": "failed", "retry": not isinstance(error, NEVER_RETRIED), "error": described}
    policy = getattr(task, "retry_policy", None)
    if policy is not None and outcome["retry"]:
        outcome.update(_by_policy(policy, error, context))
    return outcome


def _by_policy(policy: Any, error: BaseException, context: Any) -> Outcome:
    """What the author's retry policy says; a policy that itself fails changes nothing."""
    ti = context["ti"] if context is not None else None
    try:
        decision = policy.evaluate(error, getattr(ti, "try_number", 1), getattr(ti, "max_tries", 0), context)
    except Exception:
        log.exception("The retry policy failed; the task's own retry settings count.")
        return {}
    return decision.to_outcome()


#: first hit counts; everything else is a failure that may be retried
MEANINGS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], Callable[..., Outcome]], ...] = (
    (AirflowSkipException, _skipped),
    (AirflowRescheduleException, _rescheduled),
    (TaskDeferred, _deferred),
    (DownstreamTasksSkipped, _skips_others),
)
NEVER_RETRIED: tuple[type[BaseException], ...] = (
    AirflowFailException,
    AirflowSensorTimeout,
    UnmappableXComLengthPushed,
    UnmappableXComTypePushed,
    XComForMappingNotPushed,
)


def describe(error: BaseException) -> dict[str, Any]:
    """Type (dotted unless built in), message, and traceback without the frames of this package."""
    kind = type(error)
    dotted = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    message = f"exit code {error.code!r}" if isinstance(error, SystemExit) else str(error)
    return {"type": dotted, "message": message, "traceback": user_traceback(error)}


def user_traceback(error: BaseException) -> str:
    """The traceback from the first frame that is not of this package's machinery."""
    return "".join(traceback.format_exception(type(error), error, own_frames(error)))


def own_frames(error: BaseException) -> Any:
    """The traceback below ``usercode``; the whole one when the error arose there."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").startswith("scheduler_app.usercode"):
        trace = trace.tb_next
    return trace or error.__traceback__


def _instant(value: dt.datetime) -> str:
    if value.tzinfo is None:
        value = value.replace(tzinfo=dt.UTC)
    return value.isoformat()
