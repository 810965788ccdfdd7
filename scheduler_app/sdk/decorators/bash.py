"""``@task.bash``: the function returns the command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from scheduler_app.sdk.context import names_for
from scheduler_app.sdk.decorators.base import DecoratedOperator, make_decorator, need_text
from scheduler_app.sdk.operators.bash import BashOperator
from scheduler_app.sdk.operators.python import call_arguments, run_function
from scheduler_app.sdk.xcom_arg import SET_DURING_EXECUTION


class _BashDecoratedOperator(DecoratedOperator, BashOperator):
    template_fields = ("op_args", "op_kwargs", *BashOperator.template_fields)
    template_ext = ()
    overwrite_rtif_after_execution = True
    custom_operator_name = "@task.bash"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Collection[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.pop("multiple_outputs", None)
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            bash_command=SET_DURING_EXECUTION,
            multiple_outputs=False,
            **kwargs,
        )

    def execute(self, context: Any) -> Any:
        names = names_for(context, self.python_callable)
        kwargs = call_arguments(self.python_callable, self.op_args, {**names, **self.op_kwargs}, self.op_kwargs)
        self.bash_command = run_function(self.python_callable, self.op_args, kwargs)
        self.bash_command = self.render_template(need_text(self.bash_command, "@task.bash"), context)
        return self._run(context, self.bash_command)


bash_task = make_decorator(_BashDecoratedOperator, "@task.bash")
