"""``@task.sensor``: the function is the look."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk.decorators.base import DecoratedOperator, make_decorator
from scheduler_app.sdk.sensors.python import PythonSensor


class DecoratedSensorOperator(DecoratedOperator, PythonSensor):
    template_fields = ("op_args", "op_kwargs")
    custom_operator_name = "@task.sensor"

    def __init__(self, *, python_callable: Any, op_args: Any = None, op_kwargs: Any = None, **kwargs: Any) -> None:
        kwargs.pop("multiple_outputs", None)
        held = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(kwargs_to_upstream=held, **held, **kwargs)


sensor_task = make_decorator(DecoratedSensorOperator, "@task.sensor")
