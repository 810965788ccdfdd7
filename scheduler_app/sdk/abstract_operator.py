"""What plain and mapped tasks have in common: their place in the DAG, setup and teardown, relatives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from scheduler_app.sdk import scope
from scheduler_app.sdk.exceptions import AirflowException
from scheduler_app.sdk.node import DAGNode
from scheduler_app.sdk.states import TriggerRule
from scheduler_app.sdk.templates import Templater
from scheduler_app.sdk.xcom_arg import XComArg, is_arg_set

if TYPE_CHECKING:
    from scheduler_app.sdk.dag import DAG


class AbstractOperator(Templater, DAGNode):
    """A task, plain or mapped."""

    task_id: str
    is_setup: bool
    is_teardown: bool
    on_failure_fail_dagrun: bool
    multiple_outputs: bool
    is_mapped: bool = False
    trigger_rule: Any

    @property
    def node_id(self) -> str:
        return self.task_id

    @property
    def task_type(self) -> str:
        return type(self).__name__

    @property
    def operator_name(self) -> str:
        """The name that people see: ``custom_operator_name`` of the class, else its name."""
        return getattr(self, "custom_operator_name", None) or self.task_type

    @property
    def roots(self) -> Sequence[AbstractOperator]:
        return [self]

    @property
    def leaves(self) -> Sequence[AbstractOperator]:
        return [self]

    def as_setup(self) -> Any:
        self.is_setup = True
        return self

    def as_teardown(self, *, setups: Any = None, on_failure_fail_dagrun: Any = False) -> Any:
        """Marks the task as teardown of ``setups`` (a task, a result, or several), which become its upstreams.

        It runs by the rule of teardowns, whatever rule it was given.
        """
        self.is_teardown = True
        self.trigger_rule = TriggerRule.ALL_DONE_SETUP_SUCCESS
        if is_arg_set(on_failure_fail_dagrun):
            self.on_failure_fail_dagrun = bool(on_failure_fail_dagrun)
        if setups is not None and is_arg_set(setups):
            for setup in setups if isinstance(setups, Iterable) and not isinstance(setups, XComArg) else [setups]:
                for task in setup.roots:
                    task.is_setup = True
                    task.set_downstream(self)
        return self

    def __enter__(self) -> AbstractOperator:
        """``with setup >> teardown:`` puts the tasks made inside between the two."""
        if not self.is_setup and not self.is_teardown:
            raise AirflowException(f"Only setup and teardown tasks open a `with` block; {self.task_id!r} is neither.")
        scope.push_setup([])
        return self

    def __exit__(self, *error: Any) -> None:
        made = scope.pop_setup()
        if self.is_teardown:
            setups = [task for task in self.upstream_list if task.is_setup]
            teardowns: list[Any] = [self]
        else:
            setups = [self]
            teardowns = [task for task in self.downstream_list if task.is_teardown]
        inside = {task.task_id for task in made}
        for task in made:
            if task.is_teardown or task.is_setup:
                continue
            if not task.upstream_task_ids & inside:
                task.set_upstream(setups)
            if not any(not task.dag.get_task(other).is_teardown for other in task.downstream_task_ids & inside):
                task.set_downstream(teardowns)
        scope_outer(made)

    def get_closest_mapped_task_group(self) -> Any:
        """The innermost mapped group around the task, or None."""
        group = self.task_group
        while group is not None and not group.is_mapped:
            group = group.task_group
        return group

    def iter_mapped_task_groups(self) -> Iterator[Any]:
        """Mapped groups around the task, from inside out."""
        group = self.task_group
        while group is not None:
            if group.is_mapped:
                yield group
            group = group.task_group

    def get_needs_expansion(self) -> bool:
        return self.is_mapped or self.get_closest_mapped_task_group() is not None

    def get_dag(self) -> DAG | None:
        return self.dag

    def get_upstreams_only_setups(self) -> list[Any]:
        """Setups that come before the task and whose teardown does not."""
        ids = self.get_flat_relative_ids(upstream=True)
        dag = self._need_dag()
        return [dag.get_task(task_id) for task_id in sorted(ids) if dag.get_task(task_id).is_setup]

    @property
    def extra_links(self) -> list[str]:
        return sorted(str(link.name) for link in getattr(self, "operator_extra_links", ()) if hasattr(link, "name"))

    def get_outlet_defs(self) -> list[Any]:
        return list(getattr(self, "outlets", ()))

    def get_inlet_defs(self) -> list[Any]:
        return list(getattr(self, "inlets", ()))


def scope_outer(made: list[Any]) -> None:
    """Tasks of an inner setup block belong to the outer one too."""
    for task in made:
        scope.note_for_setup(task)
