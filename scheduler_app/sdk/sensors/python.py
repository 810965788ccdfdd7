"""PythonSensor: waits until a function gives something true."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler_app.sdk.context import names_for
from scheduler_app.sdk.operators.python import call_arguments, run_function
from scheduler_app.sdk.sensor_base import BaseSensorOperator, PokeReturnValue


class PythonSensor(BaseSensorOperator):
    """The function's arguments are filled as PythonOperator does; it may return a PokeReturnValue."""

    template_fields = ("templates_dict", "op_args", "op_kwargs")

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: list[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        templates_dict: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.python_callable = python_callable
        self.op_args, self.op_kwargs = op_args or [], op_kwargs or {}
        self.templates_dict = templates_dict

    def poke(self, context: Any) -> bool | PokeReturnValue:
        names = names_for(context, self.python_callable)
        available = {**names, **self.op_kwargs, "templates_dict": self.templates_dict}
        arguments = call_arguments(self.python_callable, self.op_args, available, self.op_kwargs)
        value = run_function(self.python_callable, self.op_args, arguments)
        return value if isinstance(value, PokeReturnValue) else bool(value)
