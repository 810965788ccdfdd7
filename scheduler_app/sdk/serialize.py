"""A DAG as the document of ``engine/dag.py``. The same DAG gives the same document, wherever its file lies."""

from __future__ import annotations

import datetime as dt
import enum
import json
from collections.abc import Mapping
from typing import Any

from scheduler_app.engine import dag as schema
from scheduler_app.engine.addresses import addresses
from scheduler_app.sdk import timezone
from scheduler_app.sdk.assets import Asset, AssetAlias, AssetRef
from scheduler_app.sdk.canonical import canonical_module
from scheduler_app.sdk.mapping import mapped_over
from scheduler_app.sdk.operator import BaseOperator
from scheduler_app.sdk.operators.empty import EmptyOperator
from scheduler_app.sdk.params import Param, ParamsDict
from scheduler_app.sdk.sensor_base import BaseSensorOperator
from scheduler_app.sdk.task_group import TaskGroup
from scheduler_app.sdk.weight import PriorityWeightStrategy
from scheduler_app.wire import encode

Json = Any


def serialize(dag: Any) -> dict[str, Json]:
    """The document. Raises what :meth:`DAG.validate` raises, and TypeError for a timetable that gives no document."""
    timetable = dag.timetable
    tasks = tuple(_task(task) for task in dag.tasks)
    document = schema.Dag(
        dag_id=dag.dag_id,
        dag_display_name=dag._dag_display_name,
        description=dag.description,
        doc_md=dag.doc_md,
        tags=tuple(sorted(dag.tags)),
        owners=tuple(sorted({task.owner for task in tasks})),
        owner_links=dag.owner_links,
        timezone=timezone.name_of(dag.timezone),
        start_date=moment(dag.start_date),
        end_date=moment(dag.end_date),
        catchup=dag.catchup,
        max_active_runs=dag.said("max_active_runs"),
        max_active_tasks=dag.said("max_active_tasks"),
        max_consecutive_failed_dag_runs=dag.max_consecutive_failed_dag_runs,
        dagrun_timeout=seconds(dag.dagrun_timeout),
        fail_fast=dag.fail_fast,
        misfire_policy=dag.policies.misfire_policy,
        misfire_limit=dag.policies.misfire_limit,
        overlap_policy=dag.policies.overlap_policy or "queue",
        schedule_jitter=seconds(dag.policies.schedule_jitter) or 0.0,
        run_state=dag.policies.run_state or "leaves",
        is_paused_upon_creation=dag.is_paused_upon_creation,
        render_template_as_native_obj=dag.render_template_as_native_obj,
        params=params_document(dag.params),
        param_order=tuple(dag.params) if len(dag.params) > 1 else (),
        timetable=timetable.to_doc(),
        timetable_summary=timetable.summary,
        timetable_description=timetable.description or None,
        timetable_periodic=bool(timetable.periodic),
        callbacks=tuple(name for name in ("success", "failure") if getattr(dag, f"on_{name}_callback"))
        + (("sla_miss",) if dag.sla_miss_callback else ()),
        deadline=tuple(alert.to_doc() for alert in dag.deadline),
        access_control=plain(dag.access_control),
        default_args={name: plain(value) for name, value in sorted(dag.default_args.items())},
        template_search_path=tuple(dag.template_searchpath),
        has_sla=any(task.sla is not None for task in tasks),
        edge_labels=_edge_labels(dag),
        tasks=tasks,
        groups=tuple(_group(group) for group in dag.task_group.iter_groups()),
    )
    return schema.to_doc(document)


def _edge_labels(dag: Any) -> dict[str, str]:
    return {
        f"{above}>{below}": info["label"]
        for above, targets in sorted(dag.edge_info.items())
        for below, info in sorted(targets.items())
        if info.get("label")
    }


def _task(task: Any) -> schema.Task:
    operator_class = task.operator_class if task.is_mapped else type(task)
    # Long because it is one line for each field of the document.
    rule = task.weight_rule
    custom = isinstance(rule, PriorityWeightStrategy)
    callbacks = tuple(name for name in _CALLBACKS if getattr(task, f"on_{name}_callback"))
    return schema.Task(
        task_id=task.task_id,
        task_display_name=task._task_display_name,
        operator_name=task.task_type,
        operator_display_name=None if task.operator_name == task.task_type else task.operator_name,
        operator_module=canonical_module(operator_class),
        owner=task.owner,
        doc_md=task.doc_md,
        ui_color=task.ui_color,
        ui_fgcolor=task.ui_fgcolor,
        downstream=tuple(sorted(task.downstream_task_ids)),
        trigger_rule=str(task.trigger_rule),
        depends_on_past=task.depends_on_past,
        wait_for_downstream=task.wait_for_downstream,
        ignore_first_depends_on_past=task.ignore_first_depends_on_past,
        wait_for_past_depends_before_skipping=task.wait_for_past_depends_before_skipping,
        start_date=moment(task.start_date, task.dag),
        end_date=moment(task.end_date, task.dag),
        retries=task.retries,
        retry_delay=task.retry_delay.total_seconds(),
        retry_exponential_backoff=task.retry_exponential_backoff,
        max_retry_delay=seconds(task.max_retry_delay),
        execution_timeout=seconds(task.execution_timeout),
        sla=seconds(task.sla),
        pool=task.pool,
        pool_slots=task.pool_slots,
        queue=task.queue,
        executor=task.executor,
        priority_weight=task.priority_weight,
        weight_rule="custom" if custom else str(rule),
        weight=_custom_weight(task, rule) if custom else None,
        max_active_tis_per_dag=task.max_active_tis_per_dag,
        max_active_tis_per_dagrun=task.max_active_tis_per_dagrun,
        limits=tuple(task.keyed_limits),
        is_setup=bool(task.is_setup),
        is_teardown=bool(task.is_teardown),
        on_failure_fail_dagrun=bool(task.on_failure_fail_dagrun),
        is_empty=_is_empty(task, operator_class, callbacks),
        start_trigger=_start_trigger(task),
        can_skip_downstream=bool(operator_class.inherits_from_skipmixin),
        mapped=task.expand_input.to_doc() if task.is_mapped else None,
        map_index_template=task.map_index_template,
        feeds_mapping=bool(mapped_over(task)),
        template_fields=tuple(task.template_fields),
        multiple_outputs=bool(task.multiple_outputs),
        callbacks=callbacks,
        email_on_failure=bool(task.email_on_failure and task.email),
        email_on_retry=bool(task.email_on_retry and task.email),
        email=tuple(addresses(task.email)),
        outlets=tuple(_asset_document(item) for item in task.outlets if isinstance(item, _ASSETS)),
        inlets=tuple(_asset_document(item) for item in task.inlets if isinstance(item, _ASSETS)),
        extra_links=tuple(task.extra_links),
        sensor_mode=_sensor_mode(task, operator_class),
        judges_deferral=_judges_deferral(operator_class),
        executor_config=plain(task.executor_config) or None,
        params=params_document(task.params),
    )


_CALLBACKS = ("execute", "success", "failure", "retry", "skipped")
_RUN_BY_A_PROCESS = ("execute", "pre_execute", "post_execute")
_ASSETS = (Asset, AssetRef, AssetAlias)


def _is_empty(task: Any, operator_class: type, callbacks: tuple[str, ...]) -> bool:
    """Whether the task may succeed without a process: nothing of its author's would run."""
    if not issubclass(operator_class, EmptyOperator) or task.is_mapped:
        return False
    if any(getattr(operator_class, name) is not getattr(EmptyOperator, name) for name in _RUN_BY_A_PROCESS):
        return False
    hooks = task._pre_execute_hook or task._post_execute_hook
    return not ({"execute", "success"} & set(callbacks) or hooks or task.outlets or task.inlets)


def _start_trigger(task: Any) -> dict[str, Any] | None:
    """How the task begins in a trigger; a mapped or templated one is handed out first, and its process defers it."""
    begin = task.start_trigger_args
    if task.is_mapped or not task.start_from_trigger or begin is None:
        return None
    kwargs = encode(begin.trigger_kwargs or {}, "trigger_kwargs")
    if "{{" in str(kwargs) or "{%" in str(kwargs):
        return None
    return {
        "classpath": begin.trigger_cls,
        "kwargs": kwargs,
        "next_method": begin.next_method,
        "next_kwargs": encode(begin.next_kwargs or {}, "next_kwargs"),
        "timeout": seconds(begin.timeout),
    }


def _custom_weight(task: Any, strategy: PriorityWeightStrategy) -> int | None:
    """What the author's strategy gives the first try; it is asked again in the child when that is needed."""
    from scheduler_app.sdk.weight import FirstTry

    try:
        return int(strategy.get_weight(FirstTry(task)))
    except Exception as error:
        raise ValueError(f"The weight_rule of task {task.task_id!r} failed: {type(error).__name__}: {error}") from error


def _judges_deferral(operator_class: Any) -> bool:
    return getattr(operator_class, "resume_execution", None) not in (None, BaseOperator.resume_execution)


def _sensor_mode(task: Any, operator_class: type) -> str | None:
    if not issubclass(operator_class, BaseSensorOperator):
        return None
    mode = task.partial_kwargs.get("mode", "poke") if task.is_mapped else task.mode
    return str(mode)


def _asset_document(item: Any) -> Json:
    return item.to_doc()


def _group(group: TaskGroup) -> schema.Group:
    return schema.Group(
        group_id=group.group_id,
        display_name=group.group_display_name or None,
        tooltip=group.tooltip,
        ui_color=group.ui_color,
        ui_fgcolor=group.ui_fgcolor,
        children=tuple(
            {"group": child.group_id} if isinstance(child, TaskGroup) else {"task": child.node_id}
            for child in group.children.values()
        ),
        parent=group.task_group.group_id if group.task_group is not None else None,
        mapped=group.expand_input.to_doc() if group.is_mapped else None,  # type: ignore[attr-defined]
        upstream_group_ids=_ids(group.upstream_group_ids),
        downstream_group_ids=_ids(group.downstream_group_ids),
        upstream_task_ids=_ids(group.upstream_task_ids),
        downstream_task_ids=_ids(group.downstream_task_ids),
    )


def _ids(ids: set[Any]) -> tuple[str, ...]:
    return tuple(sorted(value for value in ids if value is not None))


def params_document(params: ParamsDict) -> dict[str, Json]:
    """name → value (unless required), schema, description."""
    return {name: _param(param) for name, param in params.params()}


def _param(param: Param) -> dict[str, Json]:
    document: dict[str, Json] = {"schema": plain(param.schema)}
    if param.has_value:
        document["value"] = param.value
    if param.description is not None:
        document["description"] = param.description
    return document


def moment(value: Any, dag: Any = None) -> str | None:
    """ISO 8601 in UTC; a naive datetime is read in the DAG's zone."""
    if value is None:
        return None
    if isinstance(value, str):
        value = timezone.parse(value)
    if value.tzinfo is None:
        value = value.replace(tzinfo=dag.timezone if dag is not None else dt.UTC)
    return dt.datetime.fromtimestamp(value.timestamp(), dt.UTC).isoformat()


def seconds(value: dt.timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


#: as they are, and asked first: nearly every value that is shown
_PLAIN = frozenset({type(None), bool, int, str})


def plain(value: Any) -> Json:
    """JSON of any value, for people to read: what has no JSON form becomes its text, without memory addresses."""
    kind = type(value)
    if kind in _PLAIN or (isinstance(value, (bool, int, str)) and not isinstance(value, enum.Enum)):
        return value
    if kind is list or kind is tuple:
        return [plain(item) for item in value]
    if kind is dict:
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return value if json.dumps(value) not in ("NaN", "Infinity", "-Infinity") else str(value)
    if isinstance(value, enum.Enum):
        return plain(value.value)
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    if isinstance(value, (dt.datetime, dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted((plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if callable(value):
        return f"<function {getattr(value, '__qualname__', type(value).__qualname__)}>"
    text = str(value)
    return f"<{type(value).__qualname__}>" if " at 0x" in text else text
