"""``@task.virtualenv``, ``@task.external_python``, and their branching forms."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk.decorators.base import DecoratedOperator, make_decorator
from scheduler_app.sdk.operators.virtualenv import (
    BranchExternalPythonOperator,
    BranchPythonVirtualenvOperator,
    ExternalPythonOperator,
    PythonVirtualenvOperator,
)


class _Held(DecoratedOperator):
    """Hands the function on to the operator behind it."""

    def __init__(self, *, python_callable: Any, op_args: Any = None, op_kwargs: Any = None, **kwargs: Any) -> None:
        held = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(kwargs_to_upstream=held, **held, **kwargs)


class _PythonVirtualenvDecoratedOperator(_Held, PythonVirtualenvOperator):
    template_fields = PythonVirtualenvOperator.template_fields
    custom_operator_name = "@task.virtualenv"


class _PythonExternalDecoratedOperator(_Held, ExternalPythonOperator):
    template_fields = ExternalPythonOperator.template_fields
    custom_operator_name = "@task.external_python"


class _BranchPythonVirtualenvDecoratedOperator(_Held, BranchPythonVirtualenvOperator):
    template_fields = BranchPythonVirtualenvOperator.template_fields
    custom_operator_name = "@task.branch_virtualenv"


class _BranchExternalPythonDecoratedOperator(_Held, BranchExternalPythonOperator):
    template_fields = BranchExternalPythonOperator.template_fields
    custom_operator_name = "@task.branch_external_python"


virtualenv_task = make_decorator(_PythonVirtualenvDecoratedOperator, "@task.virtualenv")
external_python_task = make_decorator(_PythonExternalDecoratedOperator, "@task.external_python")
branch_virtualenv_task = make_decorator(_BranchPythonVirtualenvDecoratedOperator, "@task.branch_virtualenv")
branch_external_python_task = make_decorator(_BranchExternalPythonDecoratedOperator, "@task.branch_external_python")
