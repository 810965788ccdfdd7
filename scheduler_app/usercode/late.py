"""What is called when something of a run is late: ``sla_miss_callback`` of Airflow 2, the callback of a deadline."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduler_app.sdk.notifier import BaseNotifier


@dataclass(frozen=True, slots=True)
class SlaMiss:
    """What ``sla_miss_callback`` is told of one task that was not done in time."""

    dag_id: str
    task_id: str
    #: of the run; the older name is ``execution_date``
    logical_date: datetime | None
    timestamp: datetime
    email_sent: bool = False
    notification_sent: bool = False
    description: str = ""

    @property
    def execution_date(self) -> datetime | None:
        return self.logical_date


@dataclass(frozen=True, slots=True)
class Blocking:
    """A task instance that was not done then."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    state: str | None
    logical_date: datetime | None = field(default=None)

    @property
    def execution_date(self) -> datetime | None:
        return self.logical_date


def sla_calls(dag: Any, context: Any, late: dict[str, Any]) -> list[Callable[[], Any]]:
    """One call for each ``sla_miss_callback`` of the DAG, with the five arguments that it takes."""
    run = context["dag_run"]
    slas = [
        SlaMiss(dag.dag_id, one["task_id"], run.logical_date, datetime.fromisoformat(one["due_at"]))
        for one in late["tasks"]
    ]
    blocking = [
        Blocking(dag.dag_id, run.run_id, one["task_id"], one["map_index"], one["state"], run.logical_date)
        for one in late["blocking"]
    ]
    tasks = "\n".join(f"{miss.task_id} on {_text(miss.logical_date)}" for miss in slas)
    waiting = "\n".join(f"{one.task_id} on {_text(one.logical_date)}" for one in blocking)
    return [lambda each=each: each(dag, tasks, waiting, slas, blocking) for each in dag.sla_miss_callback]


def _text(at: datetime | None) -> str:
    return at.isoformat() if at is not None else "a run without a logical date"


def deadline_call(context: Any, late: dict[str, Any]) -> Callable[[], Any]:
    """The call of a deadline's callback: its keyword arguments, and the context where it takes one.

    Raises ImportError or AttributeError for a path that leads nowhere.
    """
    target, kwargs = _resolve(late["callback"]["path"]), dict(late["callback"].get("kwargs") or {})
    context["deadline"] = {"id": late["id"], "deadline_time": datetime.fromisoformat(late["due_at"])}
    if isinstance(target, type) and issubclass(target, BaseNotifier):
        return lambda: target(**kwargs)(context)
    if _takes(target, "context"):
        kwargs["context"] = context
    return lambda: target(**kwargs)


def finish(result: Any) -> None:
    """Waits for what an asynchronous callback gave."""
    if inspect.isawaitable(result):
        import asyncio  # here: with ssl it makes every fork dearer, and few callbacks need it

        asyncio.run(_await(result))


async def _await(value: Awaitable[Any]) -> Any:
    return await value


def _resolve(path: str) -> Any:
    """By module and qualified name; the DAG file itself is a loaded module that cannot be imported by its name."""
    module, _, name = path.rpartition(".")
    while module:
        try:
            found = sys.modules.get(module) or importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not (module + ".").startswith(error.name + "."):
                raise
            module, _, before = module.rpartition(".")
            name = f"{before}.{name}"
            continue
        for part in name.split("."):
            found = getattr(found, part)
        return found
    raise ImportError(f"The callback {path!r} of a deadline cannot be found: give it as module.function.")


def _takes(target: Any, name: str) -> bool:
    try:
        parameters = inspect.signature(target).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters or any(one.kind is one.VAR_KEYWORD for one in parameters.values())
