"""What runs under ``manage.py standalone``. A row more is a process more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Component:
    """One process: the name before its lines, the colour of the name (SGR code), and what it calls."""

    name: str
    colour: int
    #: "module:function", called without arguments in a fork of the preloaded parent; it returns when SIGTERM came.
    entry: str

    def load(self) -> Callable[[], Any]:
        module, _, function = self.entry.partition(":")
        loaded: Callable[[], Any] = getattr(import_module(module), function)
        return loaded


#: In the order in which they start; they are told to stop in reverse.
COMPONENTS = (
    Component("scheduler", 32, "scheduler_app.scheduler.process:run_scheduler"),
    Component("processor", 35, "scheduler_app.dag_processor.process:run_dag_processor"),
    Component("triggerer", 33, "scheduler_app.triggerer.process:run_triggerer"),
    Component("web", 36, "scheduler_app.standalone.web:run_web"),
)
DATABASE = Component("database", 34, "scheduler_app.embedded_db:Server")
