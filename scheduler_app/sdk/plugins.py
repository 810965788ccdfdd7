"""AirflowPlugin: plugin classes can be defined and imported; classes that they list are importable by their own
path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar


class AirflowPlugin:
    """A bundle of classes with a name."""

    name: ClassVar[str | None] = None
    source: ClassVar[Any] = None
    macros: ClassVar[list[Any]] = []
    timetables: ClassVar[list[Any]] = []
    listeners: ClassVar[list[Any]] = []
    priority_weight_strategies: ClassVar[list[Any]] = []
    partition_mappers: ClassVar[list[Any]] = []
    windows: ClassVar[list[Any]] = []

    @classmethod
    def validate(cls) -> None:
        """Raises TypeError for a plugin without a name."""
        if not cls.name:
            raise TypeError(f"The plugin {cls.__name__} needs a name.")


def hookimpl(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Marks a listener's function."""

    def mark(inner: Callable[..., Any]) -> Callable[..., Any]:
        inner.airflow_impl = options  # type: ignore[attr-defined]
        return inner

    return mark if function is None else mark(function)
