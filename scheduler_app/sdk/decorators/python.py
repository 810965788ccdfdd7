"""``@task``, ``@task.branch``, ``@task.short_circuit``."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk.decorators.base import DecoratedOperator, make_decorator
from scheduler_app.sdk.operators.python import BranchPythonOperator, PythonOperator, ShortCircuitOperator


class _PythonDecoratedOperator(DecoratedOperator, PythonOperator):
    template_fields = ("templates_dict", "op_args", "op_kwargs")
    custom_operator_name = "@task"

    def __init__(self, *, python_callable: Any, op_args: Any = None, op_kwargs: Any = None, **kwargs: Any) -> None:
        held = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(kwargs_to_upstream=held, **held, **kwargs)


class _BranchPythonDecoratedOperator(_PythonDecoratedOperator, BranchPythonOperator):
    custom_operator_name = "@task.branch"


class _ShortCircuitDecoratedOperator(_PythonDecoratedOperator, ShortCircuitOperator):
    custom_operator_name = "@task.short_circuit"


python_task = make_decorator(_PythonDecoratedOperator, "@task")
branch_task = make_decorator(_BranchPythonDecoratedOperator, "@task.branch")
short_circuit_task = make_decorator(_ShortCircuitDecoratedOperator, "@task.short_circuit")
