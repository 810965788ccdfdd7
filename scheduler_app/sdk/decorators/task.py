"""``@task`` and the table of its variants."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from scheduler_app.sdk.nearest import did_you_mean

#: variant → where its decorator is made (imported when first used)
VARIANTS: dict[str, tuple[str, str]] = {
    "python": ("python", "python_task"),
    "bash": ("bash", "bash_task"),
    "branch": ("python", "branch_task"),
    "short_circuit": ("python", "short_circuit_task"),
    "sensor": ("sensor", "sensor_task"),
    "virtualenv": ("virtualenv", "virtualenv_task"),
    "external_python": ("virtualenv", "external_python_task"),
    "branch_virtualenv": ("virtualenv", "branch_virtualenv_task"),
    "branch_external_python": ("virtualenv", "branch_external_python_task"),
    "run_if": ("condition", "run_if"),
    "skip_if": ("condition", "skip_if"),
}


class TaskDecoratorCollection:
    """``@task`` itself; ``@task.bash`` and the others are its attributes."""

    def __call__(self, python_callable: Any = None, **kwargs: Any) -> Any:
        return self.python(python_callable, **kwargs) if python_callable is not None else self.python(**kwargs)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        if name not in VARIANTS:
            raise AttributeError(
                f"There is no @task.{name}.{did_you_mean(name, VARIANTS)} It may belong to a provider package: the "
                "variants here "
                f"are {', '.join(sorted(VARIANTS))}."
            )
        module, attribute = VARIANTS[name]
        found = getattr(importlib.import_module(f"scheduler_app.sdk.decorators.{module}"), attribute)
        setattr(self, name, found)
        return found


task = TaskDecoratorCollection()
TaskDecorator = TaskDecoratorCollection
