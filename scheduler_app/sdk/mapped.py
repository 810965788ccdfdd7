"""``Operator.partial(…).expand(…)``: a task of which there are as many instances as elements, known at run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from scheduler_app.sdk import scope
from scheduler_app.sdk.abstract_operator import AbstractOperator
from scheduler_app.sdk.arguments import init_parameters
from scheduler_app.sdk.mapping import DictsInput, ExpandInput, ProductInput, check_dicts, check_mappable
from scheduler_app.sdk.nearest import did_you_mean
from scheduler_app.sdk.operator import BaseOperator, default_args_in_force
from scheduler_app.sdk.params import ParamsDict
from scheduler_app.sdk.xcom_arg import XComArg

if TYPE_CHECKING:
    from scheduler_app.sdk.dag import DAG

#: What the scheduler reads of a mapped task before it knows its instances, and so is the same for all of them.
_UNMAPPABLE = frozenset(
    {
        *("task_id", "dag", "task_group", "owner", "map_index_template", "executor_config", "inlets", "outlets"),
        *("trigger_rule", "pool", "pool_slots", "queue", "priority_weight", "weight_rule", "execution_timeout"),
        *("retries", "retry_delay", "max_retry_delay", "retry_exponential_backoff", "retry_policy"),
        *("depends_on_past", "ignore_first_depends_on_past", "wait_for_past_depends_before_skipping"),
        *("wait_for_downstream", "email_on_failure", "email_on_retry", "on_execute_callback"),
        *("on_failure_callback", "on_retry_callback", "on_skipped_callback", "on_success_callback"),
    }
)


def partial(operator_class: type[BaseOperator], *, task_id: str, **kwargs: Any) -> OperatorPartial:
    """The constant arguments of a mapped task; ``expand`` or ``expand_kwargs`` completes it."""
    _check_names(operator_class, "partial", kwargs)
    return OperatorPartial(operator_class, {"task_id": task_id, **kwargs})


def _check_names(operator_class: type, method: str, kwargs: Mapping[str, Any]) -> None:
    known = init_parameters(operator_class)
    for name in kwargs:
        if name not in known:
            raise TypeError(f"{operator_class.__name__}.{method}() does not take {name!r}.{did_you_mean(name, known)}")


class OperatorPartial:
    """Half a mapped task."""

    def __init__(self, operator_class: type[BaseOperator], kwargs: dict[str, Any]) -> None:
        self.operator_class, self.kwargs = operator_class, kwargs

    def __repr__(self) -> str:
        return f"<{self.operator_class.__name__}.partial({', '.join(self.kwargs)})>"

    def expand(self, **mapped: Any) -> MappedOperator:
        """One instance for each combination of the elements. Raises TypeError, ValueError for what cannot be mapped."""
        if not mapped:
            raise TypeError("expand() needs an argument to map over: leave out .expand() for a plain task.")
        _check_names(self.operator_class, "expand", mapped)
        for name, value in mapped.items():
            if name in _UNMAPPABLE:
                raise TypeError(f"{name!r} is the same for all instances of a mapped task: give it to partial().")
            if name in self.kwargs:
                raise TypeError(f"{name!r} is given to partial() and to expand(): choose one.")
            check_mappable("expand", name, value)
        return MappedOperator(self.operator_class, self.kwargs, ProductInput(mapped))

    def expand_kwargs(self, kwargs: Any, *, strict: bool = True) -> MappedOperator:
        """One instance for each dict of arguments."""
        check_mappable("expand_kwargs", "kwargs", kwargs)
        check_dicts(kwargs)
        return MappedOperator(self.operator_class, self.kwargs, DictsInput(kwargs))


class MappedOperator(AbstractOperator):
    """A mapped task. Its shared settings live in ``prototype``; :meth:`unmap` makes the task of one instance."""

    is_mapped = True

    def __init__(
        self, operator_class: type[BaseOperator], partial_kwargs: dict[str, Any], expand_input: ExpandInput
    ) -> None:
        self.operator_class, self.partial_kwargs, self.expand_input = operator_class, partial_kwargs, expand_input
        dag: DAG | None = partial_kwargs.get("dag")
        group = partial_kwargs.get("task_group") or scope.current_group(dag)
        dag = dag or (group.dag if group is not None else None) or scope.current_dag()
        self._default_args = default_args_in_force(dag, group, partial_kwargs.get("default_args"))
        self.prototype = make_detached(BaseOperator, self._default_args, _base_level(partial_kwargs))
        label = self.prototype.task_id
        self.task_id = group.child_id(label) if group is not None else label
        self.task_group, self._dag = group, None
        self.upstream_task_ids: set[str] = set()
        self.downstream_task_ids: set[str] = set()
        self.is_setup = self.is_teardown = self.on_failure_fail_dagrun = False
        self.trigger_rule = self.prototype.trigger_rule
        self.params = ParamsDict(partial_kwargs.get("params"))
        if group is not None:
            if group.get_closest_mapped_task_group() is not None:
                raise NotImplementedError(
                    f"Task {self.task_id!r} is mapped inside a mapped group, which is not supported."
                )
            group.add(self)
        if dag is not None:
            dag.add_task(self)
        for source, _ in self._sources():
            if source is not self:
                self.set_upstream(source)
        scope.note_for_setup(self)

    def _sources(self) -> Iterator[Any]:
        yield from self.expand_input.iter_references()
        yield from XComArg.iter_xcom_references(
            {name: value for name, value in self.partial_kwargs.items() if name not in ("dag", "task_group")}
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("prototype", "operator_class"):
            raise AttributeError(name)
        if name in self.__dict__.get("partial_kwargs", {}) and not hasattr(BaseOperator, name):
            return self.prototype.__dict__.get(name, self.partial_kwargs[name])
        if name in self.prototype.__dict__ or name in ("task_display_name", "log"):
            return getattr(self.prototype, name)
        return getattr(self.operator_class, name)

    def __repr__(self) -> str:
        return f"<Mapped({self.task_type}): {self.task_id}>"

    @property
    def template_fields(self) -> Any:  # type: ignore[override]
        return self.operator_class.template_fields

    @property
    def template_ext(self) -> Any:  # type: ignore[override]
        return self.operator_class.template_ext

    @property
    def multiple_outputs(self) -> bool:  # type: ignore[override]
        return bool(self.partial_kwargs.get("multiple_outputs", self.prototype.multiple_outputs))

    @property
    def task_type(self) -> str:
        return self.operator_class.__name__

    @property
    def operator_name(self) -> str:
        return getattr(self.operator_class, "custom_operator_name", None) or self.task_type

    @property
    def dag(self) -> DAG | None:  # type: ignore[override]
        return self._dag

    @dag.setter
    def dag(self, dag: DAG | None) -> None:
        if dag is not None and self._dag is None:
            dag.add_task(self)

    @property
    def output(self) -> XComArg:
        return XComArg(self)

    def iter_mapped_dependants(self) -> Iterator[Any]:
        from scheduler_app.sdk.mapping import mapped_over

        return iter(mapped_over(self))

    def unmap(self, context: Mapping[str, Any], map_index: int) -> tuple[BaseOperator, set[int]]:
        """The task of one instance, and the ids of its values that came from XComs (not to be rendered)."""
        values, resolved = self.expand_input.resolve(context, map_index)
        kwargs = {name: value for name, value in self.partial_kwargs.items() if name not in ("dag", "task_group")}
        merged, more = self._merge(kwargs, values)
        task = make_detached(self.operator_class, self._default_args, merged)
        adopt(task, self)
        return task, resolved | more

    def _merge(self, kwargs: dict[str, Any], values: dict[str, Any]) -> tuple[dict[str, Any], set[int]]:
        clash = set(kwargs) & set(values) - {"params"}
        if clash:
            raise TypeError(
                f"Task {self.task_id!r} got {sorted(clash)} from partial() and from expand_kwargs(): choose one."
            )
        merged = {**kwargs, **values}
        if "params" in values and kwargs.get("params"):
            merged["params"] = {**ParamsDict(kwargs["params"]).dump(), **values["params"]}
        return merged, set()


def _base_level(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Those of a subclass's arguments that BaseOperator itself takes."""
    known = init_parameters(BaseOperator)
    return {name: value for name, value in kwargs.items() if name in known and name not in ("dag", "task_group")}


def make_detached(operator_class: type[BaseOperator], defaults: dict[str, Any], kwargs: dict[str, Any]) -> Any:
    """An operator that joins no DAG and no group and draws no edges."""
    made = operator_class.__new__(operator_class)
    made.__dict__["_defaults"] = defaults
    made.__dict__["_detached"] = True
    made.__init__(**kwargs)  # type: ignore[misc]
    del made.__dict__["_defaults"]
    made.__dict__["_finished_init"] = True
    return made


def adopt(task: Any, mapped: MappedOperator) -> None:
    """Gives the task of one instance the place of its mapped task in the DAG."""
    task.__dict__.update(
        task_id=mapped.task_id,
        _dag=mapped._dag,
        task_group=mapped.task_group,
        upstream_task_ids=mapped.upstream_task_ids,
        downstream_task_ids=mapped.downstream_task_ids,
        is_setup=mapped.is_setup,
        is_teardown=mapped.is_teardown,
        on_failure_fail_dagrun=mapped.on_failure_fail_dagrun,
        trigger_rule=mapped.trigger_rule,
    )
