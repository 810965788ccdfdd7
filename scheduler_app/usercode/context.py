"""The context of an attempt: Airflow's template names, from the ``start`` document and the DAG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scheduler_app.sdk import macros
from scheduler_app.sdk.asset_events import InletEvents, TriggeringEvents
from scheduler_app.sdk.configuration import conf
from scheduler_app.sdk.connection import ConnectionAccessor
from scheduler_app.sdk.context import Context
from scheduler_app.sdk.jinja_env import ts_nodash_with_tz_filter
from scheduler_app.sdk.lazy import Lazy
from scheduler_app.sdk.outlet_events import OutletEvents
from scheduler_app.sdk.params import ParamsDict
from scheduler_app.sdk.runs import DagRun, RuntimeTaskInstance, moment
from scheduler_app.sdk.runtime import current_port
from scheduler_app.sdk.state_store import AssetStateStores, TaskStateStore
from scheduler_app.sdk.variable import VariableAccessor


@dataclass(frozen=True, slots=True)
class _Of:
    """What the names of a context are made of. ``task`` and ``ti`` are None for the callback of a whole run."""

    dag: Any
    run: DagRun
    task: Any = None
    ti: Any = None
    #: what is asked of our side once, for several names
    answers: dict[str, Any] = field(default_factory=dict)


def _previous(name: str) -> Callable[[_Of], Lazy]:
    """A ``prev_…_success`` name: one question for all of them, asked when one is used."""

    def value(of: _Of) -> Any:
        if "previous" not in of.answers:
            of.answers["previous"] = _ask_previous(of.run)
        return moment((of.answers["previous"] or {}).get(name))

    return lambda of: Lazy(lambda: value(of))


def _ask_previous(dag_run: DagRun) -> Any:
    if dag_run.logical_date is None:
        return None
    return current_port().get_previous_run(dag_id=dag_run.dag_id, logical_date=dag_run.logical_date, state="success")


Names = dict[str, Callable[[_Of], Any]]

_OF_ANY_RUN: Names = {
    "conn": lambda of: ConnectionAccessor(),
    "macros": lambda of: macros,
    "partition_date": lambda of: of.run.partition_date,
    "partition_key": lambda of: of.run.partition_key,
    "prev_end_date_success": _previous("end_date"),
    "prev_start_date_success": _previous("start_date"),
    "triggering_asset_events": lambda of: TriggeringEvents(of.run.consumed_asset_events),
    "var": lambda of: {
        "value": VariableAccessor(deserialize_json=False),
        "json": VariableAccessor(deserialize_json=True),
    },
}
_OF_A_DATED_RUN: Names = {
    **_OF_ANY_RUN,
    "ds": lambda of: of.run.logical_date.strftime("%Y-%m-%d"),
    "ds_nodash": lambda of: of.run.logical_date.strftime("%Y%m%d"),
    "logical_date": lambda of: of.run.logical_date,
    "prev_data_interval_end_success": _previous("data_interval_end"),
    "prev_data_interval_start_success": _previous("data_interval_start"),
    "ts": lambda of: of.run.logical_date.isoformat(),
    "ts_nodash": lambda of: of.run.logical_date.strftime("%Y%m%dT%H%M%S"),
    "ts_nodash_with_tz": lambda of: ts_nodash_with_tz_filter(of.run.logical_date),
}
_OF_A_RUN_WITH_AN_INTERVAL: Names = {
    **_OF_A_DATED_RUN,
    "data_interval_end": lambda of: of.run.data_interval_end,
    "data_interval_start": lambda of: of.run.data_interval_start,
}
_OF_A_TASK: Names = {
    "inlet_events": lambda of: InletEvents(of.task.get_inlet_defs()),
    "inlets": lambda of: of.task.get_inlet_defs(),
    "map_index_template": lambda of: of.task.map_index_template,
    "outlet_events": lambda of: OutletEvents(of.task.get_outlet_defs()),
    "outlets": lambda of: of.task.get_outlet_defs(),
    "task_instance_key_str": lambda of: _key(of.ti, of.run),
    "task_reschedule_count": lambda of: of.ti.reschedule_count,
    "task_state_store": lambda of: TaskStateStore(of.ti),
}
#: by whether the run has a logical date, a data interval, and a task: one of these serves a context as it is
_NAMES: dict[tuple[bool, bool, bool], Names] = {
    (dated, bounded, of_task): {
        **((_OF_A_RUN_WITH_AN_INTERVAL if bounded else _OF_A_DATED_RUN) if dated else _OF_ANY_RUN),
        **(_OF_A_TASK if of_task else {}),
    }
    for dated in (False, True)
    for bounded in (False, True)
    for of_task in (False, True)
}


def build(dag: Any, task: Any, start: dict[str, Any]) -> Context:
    """The context of one attempt of ``task``. Raises ParamValidationError when the run's conf breaks a schema."""
    dag_run = DagRun(start["run"])
    document = {**start["ti"], "log_url": start.get("log_url"), "mark_success_url": start.get("mark_success_url")}
    ti = RuntimeTaskInstance(document, dag_run, task)
    context = _context(_Of(dag, dag_run, task, ti))
    context.update(task=task, ti=ti, task_instance=ti, params=_params(dag, task, dag_run))
    count = start["ti"].get("expanded_ti_count")
    (context.older if count is None else context)["expanded_ti_count"] = count
    assets = [*task.get_inlet_defs(), *task.get_outlet_defs()]
    if assets:
        context["asset_state_store"] = AssetStateStores(assets)
    ti.context = context
    return context


def build_for_run(dag: Any, start: dict[str, Any]) -> Context:
    """The context of a DAG's own callback; the last task instance stands in for ``ti`` when there is one."""
    dag_run = DagRun(start["run"])
    context = _context(_Of(dag, dag_run))
    context["params"] = _params(dag, None, dag_run)
    if start.get("ti"):
        task = dag.task_dict.get(start["ti"]["task_id"])
        ti = RuntimeTaskInstance(start["ti"], dag_run, task)
        ti.context = context
        context.update(ti=ti, task_instance=ti, task=task)
    return context


def _context(of: _Of) -> Context:
    run = of.run
    context = Context(dag=of.dag, dag_run=run, run_id=run.run_id)
    context.older.update(conf=conf, test_mode=False)
    kind = (run.has("logical_date"), run.has("data_interval_start"), of.task is not None)
    context.promise(_NAMES[kind], of)
    return context


def _params(dag: Any, task: Any, dag_run: DagRun) -> dict[str, Any]:
    """The DAG's params, overridden by the task's, overridden by the run's conf; checked against their schemas."""
    if not (dag.params or dag_run.conf or (task is not None and task.params)):
        return {}
    merged = ParamsDict(dag.params)
    if task is not None:
        for name, param in task.params.params():
            merged[name] = param.copy()
    for name, value in dag_run.conf.items():
        merged[name] = value
    return merged.validate()


def _key(ti: RuntimeTaskInstance, dag_run: DagRun) -> str:
    day = dag_run.logical_date or dag_run.run_after
    return f"{ti.dag_id}__{ti.task_id}__{day.strftime('%Y%m%d') if day is not None else dag_run.run_id}"
