"""BaseOperator: one task of a DAG, as an author writes it."""

from __future__ import annotations

import datetime as dt
import functools
import inspect
import logging
from abc import ABCMeta
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from scheduler_app.engine import resources
from scheduler_app.sdk import scope
from scheduler_app.sdk.abstract_operator import AbstractOperator
from scheduler_app.sdk.arguments import (
    as_callbacks,
    as_delay,
    as_pool_slots,
    as_seconds_factor,
    missing_arguments,
    reject_unknown,
)
from scheduler_app.sdk.exceptions import AirflowException, TaskDeferred
from scheduler_app.sdk.limits import read as read_limits
from scheduler_app.sdk.node import validate_id
from scheduler_app.sdk.params import ParamsDict
from scheduler_app.sdk.states import TriggerRule, read_trigger_rule
from scheduler_app.sdk.weight import read_weight_rule
from scheduler_app.sdk.xcom_arg import NOTSET, XComArg, is_arg_set

if TYPE_CHECKING:
    from scheduler_app.sdk.dag import DAG
    from scheduler_app.sdk.task_group import TaskGroup

DEFAULT_OWNER = "airflow"
DEFAULT_RETRY_DELAY = dt.timedelta(seconds=300)


class OperatorMeta(ABCMeta):
    """Fills each ``__init__`` of an operator class from the default arguments in force, level by level."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **kwargs: Any) -> Any:
        made = super().__new__(mcs, name, bases, namespace, **kwargs)
        if "__init__" in namespace:
            made.__init__ = _filled(made, namespace["__init__"])  # type: ignore[misc]
        partial = namespace.get("partial")
        if partial is None and "partial" not in namespace:
            made.partial = _PartialMaker(made)  # type: ignore[attr-defined]
        return made

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args:
            raise TypeError(f"{cls.__name__} takes keyword arguments only; got the positional {args!r}.")
        made = cls.__new__(cls)
        group = kwargs.get("task_group") or scope.current_group(kwargs.get("dag"))
        dag = kwargs.get("dag") or (group.dag if group is not None else None) or scope.current_dag()
        made.__dict__["_defaults"] = default_args_in_force(dag, group, kwargs.get("default_args"))
        made.__init__(**kwargs)
        del made.__dict__["_defaults"]
        made.__dict__["_finished_init"] = True
        made.set_xcomargs_dependencies()
        if dag is not None or made.dag is not None:
            scope.note_for_setup(made)
        return made


class _PartialMaker:
    """``Operator.partial(...)``: the first half of a mapped task."""

    def __init__(self, operator_class: type) -> None:
        self._class = operator_class

    def __get__(self, instance: Any, owner: type) -> Callable[..., Any]:
        from scheduler_app.sdk.mapped import partial

        return functools.partial(partial, owner)


def default_args_in_force(dag: DAG | None, group: TaskGroup | None, own: dict[str, Any] | None) -> dict[str, Any]:
    """The DAG's default arguments, overridden by its groups' from outside in, overridden by the task's own."""
    merged: dict[str, Any] = dict(dag.default_args) if dag is not None else {}
    chain: list[dict[str, Any]] = []
    while group is not None:
        chain.append(group.default_args)
        group = group.task_group
    for defaults in reversed(chain):
        merged.update(defaults)
    if own:
        merged.update(own)
    return merged


def _filled(owner: type, init: Callable[..., None]) -> Callable[..., None]:
    parameters = inspect.signature(init).parameters
    names = [
        name
        for name, parameter in list(parameters.items())[1:]
        if parameter.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    ]
    required = [name for name in names if parameters[name].default is inspect.Parameter.empty]
    # params are merged, dag and task_group say where the task lives: none of them is filled from default arguments
    fillable = [name for name in names if name not in ("params", "dag", "task_group", "default_args", "task_id")]

    @functools.wraps(init)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        if args:
            raise TypeError(f"{owner.__name__} takes keyword arguments only; got the positional {args!r}.")
        defaults = self.__dict__.get("_defaults") or {}
        for name in fillable:
            if name in defaults and name not in kwargs:
                kwargs[name] = defaults[name]
        missing = [name for name in required if name not in kwargs]
        if missing:
            raise TypeError(missing_arguments(type(self), owner, missing, kwargs))
        if "_init_kwargs" not in self.__dict__:
            self.__dict__["_init_kwargs"] = dict(kwargs)
        init(self, **kwargs)

    wrapper._wrapped_init = init  # type: ignore[attr-defined]
    return wrapper


class BaseOperator(AbstractOperator, metaclass=OperatorMeta):
    """One task. Subclasses override :meth:`execute`; every argument below may also come from ``default_args``.

    Durations are timedeltas (``retry_delay`` and ``execution_timeout`` also take seconds). Raises TypeError for unknown
    arguments, ValueError for a wrong trigger or weight rule, AirflowException for a wrong id,
    DuplicateTaskIdFound for an id that the DAG has.
    """

    template_fields: ClassVar[Collection[str]] | Collection[str] = ()
    template_ext: ClassVar[Sequence[str]] | Sequence[str] = ()
    template_fields_renderers: ClassVar[dict[str, str]] = {}
    ui_color: str = "#fff"
    ui_fgcolor: str = "#000"
    operator_extra_links: Collection[Any] = ()
    shallow_copy_attrs: Sequence[str] = ()
    start_trigger_args: Any = None
    start_from_trigger: bool = False
    supports_lineage = False
    inherits_from_empty_operator = False
    inherits_from_skipmixin = False
    #: whether its templated fields are shown anew after it ran, because it sets one itself
    overwrite_rtif_after_execution = False
    returns_dag_result = False
    pool: str
    is_mapped = False

    def __init__(
        self,
        *,
        task_id: str,
        owner: str = DEFAULT_OWNER,
        email: str | Sequence[str] | None = None,
        email_on_retry: bool = True,
        email_on_failure: bool = True,
        retries: int | None = 0,
        retry_delay: dt.timedelta | float = DEFAULT_RETRY_DELAY,
        retry_exponential_backoff: bool | float = 0,
        max_retry_delay: dt.timedelta | float | None = None,
        retry_policy: Any = None,
        start_date: dt.datetime | None = None,
        end_date: dt.datetime | None = None,
        depends_on_past: bool = False,
        ignore_first_depends_on_past: bool = False,
        wait_for_past_depends_before_skipping: bool = False,
        wait_for_downstream: bool = False,
        dag: DAG | None = None,
        params: Any = None,
        default_args: dict[str, Any] | None = None,
        priority_weight: int = 1,
        weight_rule: Any = "downstream",
        queue: str = "default",
        pool: str | None = None,
        pool_slots: int = 1,
        sla: dt.timedelta | None = None,
        execution_timeout: dt.timedelta | None = None,
        on_execute_callback: Any = None,
        on_failure_callback: Any = None,
        on_success_callback: Any = None,
        on_retry_callback: Any = None,
        on_skipped_callback: Any = None,
        pre_execute: Callable[[Any], None] | None = None,
        post_execute: Callable[[Any, Any], None] | None = None,
        trigger_rule: str = TriggerRule.ALL_SUCCESS,
        resources: dict[str, Any] | None = None,
        run_as_user: str | None = None,
        map_index_template: str | None = None,
        max_active_tis_per_dag: int | None = None,
        max_active_tis_per_dagrun: int | None = None,
        limits: Any = None,
        executor: str | None = None,
        executor_config: dict[str, Any] | None = None,
        do_xcom_push: bool = True,
        multiple_outputs: bool = False,
        inlets: Any = None,
        outlets: Any = None,
        task_group: TaskGroup | None = None,
        doc: str | None = None,
        doc_md: str | None = None,
        doc_json: str | None = None,
        doc_yaml: str | None = None,
        doc_rst: str | None = None,
        task_display_name: str | None = None,
        logger_name: str | None = None,
        allow_nested_operators: bool = True,
        render_template_as_native_obj: bool | None = None,
        **kwargs: Any,
    ) -> None:
        reject_unknown(type(self), task_id, kwargs)
        # Long because it is one line for each argument that an operator has.
        self.upstream_task_ids: set[str] = set()
        self.downstream_task_ids: set[str] = set()
        self._dag: DAG | None = None
        detached = self.__dict__.get("_detached", False)
        group = None if detached else task_group if task_group is not None else scope.current_group(dag)
        self.task_group = group
        self.task_id = group.child_id(validate_id(task_id, "task_id")) if group else validate_id(task_id, "task_id")
        self.owner = owner
        self.email = [email] if isinstance(email, str) else email
        self.email_on_retry, self.email_on_failure = email_on_retry, email_on_failure
        self.retries = int(retries or 0)
        self.retry_delay = as_delay(retry_delay, "retry_delay", task_id)
        self.retry_exponential_backoff = as_seconds_factor(retry_exponential_backoff)
        self.max_retry_delay = (
            None if max_retry_delay is None else as_delay(max_retry_delay, "max_retry_delay", task_id)
        )
        self.retry_policy = retry_policy
        self.start_date, self.end_date = start_date, end_date
        self.wait_for_downstream = wait_for_downstream
        self.depends_on_past = depends_on_past or wait_for_downstream
        self.ignore_first_depends_on_past = ignore_first_depends_on_past
        self.wait_for_past_depends_before_skipping = wait_for_past_depends_before_skipping
        self.params = ParamsDict(params)
        self.priority_weight = int(priority_weight)
        self.weight_rule = read_weight_rule(weight_rule, task_id)
        self.queue = queue
        self.pool = pool or "default_pool"
        self.pool_slots = as_pool_slots(pool_slots, task_id)
        self.sla = sla
        self.execution_timeout = (
            None if execution_timeout is None else as_delay(execution_timeout, "execution_timeout", task_id)
        )
        self.on_execute_callback = as_callbacks(on_execute_callback, "on_execute_callback", task_id)
        self.on_failure_callback = as_callbacks(on_failure_callback, "on_failure_callback", task_id)
        self.on_success_callback = as_callbacks(on_success_callback, "on_success_callback", task_id)
        self.on_retry_callback = as_callbacks(on_retry_callback, "on_retry_callback", task_id)
        self.on_skipped_callback = as_callbacks(on_skipped_callback, "on_skipped_callback", task_id)
        self._pre_execute_hook, self._post_execute_hook = pre_execute, post_execute
        self.trigger_rule = read_trigger_rule(trigger_rule, f"Task {task_id!r}")
        self.resources, self.run_as_user = resources, run_as_user
        self.map_index_template = map_index_template
        self.max_active_tis_per_dag, self.max_active_tis_per_dagrun = max_active_tis_per_dag, max_active_tis_per_dagrun
        self.keyed_limits = read_limits(limits, task_id)
        self.executor, self.executor_config = executor, executor_config or {}
        _check_limits(self.executor_config, task_id)
        self.do_xcom_push, self.multiple_outputs = do_xcom_push, multiple_outputs
        self.inlets, self.outlets = _as_list(inlets), _as_list(outlets)
        self.doc, self.doc_md, self.doc_json, self.doc_yaml, self.doc_rst = doc, doc_md, doc_json, doc_yaml, doc_rst
        self._task_display_name = task_display_name
        self.logger_name = logger_name
        self.allow_nested_operators = allow_nested_operators
        self.render_template_as_native_obj = render_template_as_native_obj
        self.is_setup = self.is_teardown = False
        self.on_failure_fail_dagrun = False
        if group is not None:
            group.add(self)
        if detached:
            return
        owner_dag = dag or (group.dag if group is not None else None) or scope.current_dag()
        if owner_dag is not None:
            owner_dag.add_task(self)

    def __setattr__(self, key: str, value: Any) -> None:
        object.__setattr__(self, key, value)
        if key in self.template_fields and self.__dict__.get("_finished_init") and not self.__dict__.get("_detached"):
            XComArg.apply_upstream_relationship(self, value)

    def __repr__(self) -> str:
        return f"<Task({self.task_type}): {self.task_id}>"

    def set_xcomargs_dependencies(self) -> None:
        """Draws the edges of XComArgs in templated fields."""
        if self.__dict__.get("_detached"):
            return
        for name in self.template_fields:
            if hasattr(self, name):
                XComArg.apply_upstream_relationship(self, getattr(self, name))

    @property
    def dag(self) -> DAG | None:
        return self._dag

    @dag.setter
    def dag(self, dag: DAG | None) -> None:
        if dag is None:
            self._dag = None
        elif self._dag is not None and self._dag is not dag:
            raise AirflowException(
                f"Task {self.task_id!r} belongs to DAG {self._dag.dag_id!r}; it cannot move to {dag.dag_id!r}."
            )
        elif self._dag is None:
            dag.add_task(self)

    @property
    def task_display_name(self) -> str:
        return self._task_display_name or self.task_id

    @property
    def output(self) -> XComArg:
        """The task's return value, as an argument for other tasks."""
        return XComArg(self)

    @property
    def log(self) -> logging.Logger:
        suffix = f".{self.logger_name}" if self.logger_name else ""
        return logging.getLogger(f"airflow.task.operators{suffix}")

    # -- run time ---------------------------------------------------------------------------------------------------

    def execute(self, context: Any) -> Any:
        """What the task does; the returned value becomes its XCom. Subclasses override it."""
        raise NotImplementedError(f"{type(self).__name__} has no execute(): define it.")

    def pre_execute(self, context: Any) -> None:
        if self._pre_execute_hook is not None:
            self._pre_execute_hook(context)

    def post_execute(self, context: Any, result: Any = None) -> None:
        if self._post_execute_hook is not None:
            self._post_execute_hook(context, result)

    def on_kill(self) -> None:
        """Called when the attempt is ended from outside; subclasses end what they started elsewhere."""

    def defer(
        self,
        *,
        trigger: Any,
        method_name: str,
        kwargs: dict[str, Any] | None = None,
        timeout: dt.timedelta | int | float | None = None,
    ) -> None:
        """Ends this attempt; ``method_name`` is called with the trigger's event in a later one."""
        if isinstance(timeout, (int, float)):
            timeout = dt.timedelta(seconds=timeout)
        raise TaskDeferred(trigger=trigger, method_name=method_name, kwargs=kwargs, timeout=timeout)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """Goes on where :meth:`defer` left. Raises TaskDeferralError when the trigger failed."""
        from scheduler_app.sdk.deferral import resume

        return resume(self, next_method, next_kwargs, context)

    def iter_mapped_dependants(self) -> Iterator[Any]:
        """Tasks and groups that are mapped over this task's result."""
        from scheduler_app.sdk.mapping import mapped_over

        return iter(mapped_over(self))

    @staticmethod
    def xcom_push(context: Any, key: str, value: Any) -> None:
        context["ti"].xcom_push(key=key, value=value)

    @staticmethod
    def xcom_pull(
        context: Any, task_ids: Any = None, dag_id: str | None = None, key: str = "return_value", **kwargs: Any
    ) -> Any:
        return context["ti"].xcom_pull(task_ids=task_ids, dag_id=dag_id, key=key, **kwargs)


def _as_list(value: Any) -> list[Any]:
    if value is None or not is_arg_set(value):
        return []
    return list(value) if isinstance(value, (list, tuple, set, frozenset)) else [value]


__all__ = ["DEFAULT_OWNER", "DEFAULT_RETRY_DELAY", "NOTSET", "BaseOperator", "OperatorMeta", "default_args_in_force"]


def _check_limits(executor_config: Any, task_id: str) -> None:
    try:
        resources.of(executor_config, resources.Resources())
    except ValueError as error:
        raise AirflowException(f"Task {task_id!r}: {error}") from None


def apply_defaults(function: Callable[..., Any]) -> Callable[..., Any]:
    """The decorator that Airflow 1 wanted on ``__init__``; default arguments are applied to every operator here."""
    return function
