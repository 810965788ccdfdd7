"""Callbacks of authors: ``on_…_callback`` of tasks and DAGs."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from scheduler_app.sdk.context import set_current_context
from scheduler_app.usercode import context as contexts
from scheduler_app.usercode import late, outcomes

log = logging.getLogger("airflow.task")

#: the run state that a DAG's callback sees, whatever the document said
_RUN_STATE = {"success": "success", "failure": "failed"}
_TASK_STATE = {"success": "success", "failure": "failed", "retry": "up_for_retry", "skipped": "skipped"}


def run(
    dag: Any, kind: str, task_id: str | None, start: dict[str, Any], error: dict[str, Any] | None
) -> dict[str, Any]:
    """Runs all callbacks of ``kind``. Gives an outcome: success, or failed with the first error."""
    if kind in ("sla_miss", "deadline"):
        return _of_lateness(dag, kind, start)
    if task_id is None:
        found, built = getattr(dag, f"on_{kind}_callback"), None
        built = contexts.build_for_run(dag, start)
        built["reason"] = (error or {}).get("message") or start.get("reason") or kind
    else:
        task = dag.get_task(task_id)
        found = getattr(task, f"on_{kind}_callback")
        built = contexts.build(dag, task, start)
        built["ti"].state = _TASK_STATE.get(kind, built["ti"].state)
        if task.is_mapped:
            built["task"] = built["ti"].task = task.unmap(built, built["ti"].map_index)[0]
    if error is not None and kind in ("failure", "retry"):
        built["exception"] = rebuild(error)
    with set_current_context(built):
        errors = call_all(found, built)
    return _outcome(errors)


def _of_lateness(dag: Any, kind: str, start: dict[str, Any]) -> dict[str, Any]:
    built = contexts.build_for_run(dag, start)
    built["reason"] = start.get("reason") or kind
    told = start.get("late") or {}
    with set_current_context(built):
        calls = late.sla_calls(dag, built, told) if kind == "sla_miss" else [late.deadline_call(built, told)]
        return _outcome(call_all([lambda _, call=call: call() for call in calls], built))


def _outcome(errors: Sequence[Exception]) -> dict[str, Any]:
    if errors:
        return {"op": "outcome", "state": "failed", "retry": False, "error": outcomes.describe(errors[0])}
    return {"op": "outcome", "state": "success"}


def call_all(callbacks: Iterable[Callable[..., Any]], context: Any) -> list[Exception]:
    """Calls each; one that raises is logged and does not keep the others from running."""
    errors = []
    for callback in callbacks:
        try:
            _call(callback, context)
        except Exception as error:
            log.exception("The callback %s failed.", getattr(callback, "__qualname__", callback))
            errors.append(error)
    return errors


def _call(callback: Callable[..., Any], context: Any) -> None:
    late.finish(callback(context))


def rebuild(error: dict[str, Any]) -> BaseException:
    """An exception of the described class and message, as near as it can be made again."""
    kind = _find(error.get("type") or "Exception")
    message = error.get("message") or ""
    try:
        made = kind(_unquoted(kind, message))
    except Exception:
        made = type(kind.__name__, (Exception,), {})(message)
    made.add_note(error.get("traceback") or "")
    return made


def _unquoted(kind: type[BaseException], message: str) -> str:
    """KeyError shows its argument in quotes; the argument itself has none."""
    return (
        message[1:-1]
        if issubclass(kind, KeyError) and message[:1] in "'\"" and message[:1] == message[-1:]
        else message
    )


def _find(dotted: str) -> type[BaseException]:
    module, _, name = dotted.rpartition(".")
    try:
        found = getattr(importlib.import_module(module or "builtins"), name, None)
    except ImportError:
        found = None
    if isinstance(found, type) and issubclass(found, BaseException):
        return found
    return type(name or "Exception", (Exception,), {})
