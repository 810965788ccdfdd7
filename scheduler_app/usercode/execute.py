"""One attempt: from the ``start`` document to the ``outcome`` document (docs/borders.md §3)."""

from __future__ import annotations

import contextlib
import copy
import logging
from typing import Any

import croniter  # noqa: F401
import pendulum  # noqa: F401  (each attempt would import these anew: the zygote has them before it forks)

import scheduler_app.sdk.configuration
import scheduler_app.sdk.context_env
import scheduler_app.sdk.decorators.python
import scheduler_app.sdk.moments
import scheduler_app.sdk.operators.bash
import scheduler_app.sdk.operators.empty
import scheduler_app.sdk.sensors.python
import scheduler_app.timetables  # noqa: F401
from scheduler_app.sdk.context import set_current_context
from scheduler_app.sdk.exceptions import TaskDeferred
from scheduler_app.sdk.provider_support import import_string
from scheduler_app.sdk.runtime import Port, set_port
from scheduler_app.usercode import callbacks, context, limits, outcomes, render, resources, results
from scheduler_app.wire import decode, import_class

log = logging.getLogger("airflow.task")


def run(dag: Any, start: dict[str, Any], port: Port) -> dict[str, Any]:
    """Runs the attempt that ``start`` describes and says how it ended. Never raises what the task raised.

    The outcome is JSON; XComs and rendered fields go through ``port`` before it.
    """
    set_port(port)
    task = built = None
    try:
        task = dag.get_task(start["ti"]["task_id"])
        built = context.build(dag, task, start)
        with set_current_context(built):
            return _attempt(task, built, start, port)
    except BaseException as error:
        return outcomes.of_exception(error, task, built)
    finally:
        set_port(None)


def _attempt(declared: Any, built: Any, start: dict[str, Any], port: Port) -> dict[str, Any]:
    task, resolved = _instance(declared, built, start)
    ti = built["ti"]
    ti.task = built["task"] = task
    limits.prepare_logging()
    resume = start["ti"].get("next_method")
    with limits.on_terminate(task):
        resources.limit(task, start)
        try:
            task.resolve_template_files()
            render.render(task, built, resolved)
            port.set_rendered_fields(render.shown_fields(task))
            if not resume:
                callbacks.call_all(task.on_execute_callback, built)
            task.pre_execute(built)
            value = _execute(task, built, start, resume)
            task.post_execute(built, value)
            _show_what_it_set(task, port)
        except BaseException as error:
            with contextlib.suppress(Exception):  # the error of the task is the one to tell
                _show_what_it_set(task, port)
                results.render_map_index(task, built)
            return outcomes.of_exception(error, task, built)
        return outcomes.of_success(task, built, value, port)


def _show_what_it_set(task: Any, port: Port) -> None:
    """Some operators know a templated field only when they have run: the command that ``@task.bash`` was given."""
    if task.overwrite_rtif_after_execution:
        port.set_rendered_fields(render.shown_fields(task))


def _instance(declared: Any, built: Any, start: dict[str, Any]) -> tuple[Any, set[int]]:
    """The task to run: for a mapped task the one of this map index."""
    if declared.is_mapped:
        task, resolved = declared.unmap(built, built["ti"].map_index)
        built["params"].update(
            {name: value for name, value in task.params.dump().items() if name not in built["dag_run"].conf}
        )
        return task, resolved
    # Rendering writes into the task: a process that stays (a test, a triggerer) keeps the declared one.
    task = declared if resources.is_own_process(start) else copy.copy(declared)
    task.__dict__["_detached"] = True
    return task, set()


def _execute(task: Any, built: Any, start: dict[str, Any], resume: str | None) -> Any:
    if task.execution_timeout is None:
        return _begin(task, built, start, resume)
    with limits.execution_timeout(task, built):
        return _begin(task, built, start, resume)


def _begin(task: Any, built: Any, start: dict[str, Any], resume: str | None) -> Any:
    if resume:
        kwargs = decode(start["ti"].get("next_kwargs") or {}, classes=import_class)
        return task.resume_execution(resume, kwargs, built)
    if task.start_from_trigger and task.start_trigger_args is not None:
        raise _first_wait(task.start_trigger_args)
    return task.execute(built)


def _first_wait(begin: Any) -> TaskDeferred:
    """The deferral with which a task begins whose first step is a trigger."""
    trigger = import_string(begin.trigger_cls)(**(begin.trigger_kwargs or {}))
    return TaskDeferred(trigger=trigger, method_name=begin.next_method, kwargs=begin.next_kwargs, timeout=begin.timeout)


def run_callback(
    dag: Any, kind: str, task_id: str | None, start: dict[str, Any], port: Port, error: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Runs the author's callbacks of one kind (success, failure, retry, skipped, execute, sla_miss) of a task or the
    DAG.

    Each of several callbacks runs, whatever the others do; the outcome is ``failed`` when one of them raised.
    """
    set_port(port)
    try:
        limits.prepare_logging()
        return callbacks.run(dag, kind, task_id, start, error)
    except BaseException as raised:
        return outcomes.of_exception(raised, None, None)
    finally:
        set_port(None)
