"""The context of an attempt: Airflow's template names, from the ``start`` document and the DAG."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk import macros
from scheduler_app.sdk.asset_events import InletEvents, TriggeringEvents
from scheduler_app.sdk.connection import ConnectionAccessor
from scheduler_app.sdk.context import Context
from scheduler_app.sdk.jinja_env import ts_nodash_with_tz_filter
from scheduler_app.sdk.lazy import Lazy
from scheduler_app.sdk.outlet_events import OutletEvents
from scheduler_app.sdk.params import ParamsDict
from scheduler_app.sdk.runs import DagRun, RuntimeTaskInstance, moment
from scheduler_app.sdk.state_store import AssetStateStores, TaskStateStore
from scheduler_app.sdk.variable import VariableAccessor


def build(dag: Any, task: Any, start: dict[str, Any]) -> Context:
    """The context of one attempt of ``task``. Raises ParamValidationError when the run's conf breaks a schema."""
    dag_run = DagRun(start["run"])
    document = {**start["ti"], "log_url": start.get("log_url"), "mark_success_url": start.get("mark_success_url")}
    ti = RuntimeTaskInstance(document, dag_run, task)
    context = _of_run(dag, dag_run)
    context.update(
        task=task,
        ti=ti,
        task_instance=ti,
        task_instance_key_str=_key(ti, dag_run),
        task_reschedule_count=ti.reschedule_count,
        params=_params(dag, task, dag_run),
        inlets=task.get_inlet_defs(),
        outlets=task.get_outlet_defs(),
        inlet_events=InletEvents(task.get_inlet_defs()),
        outlet_events=OutletEvents(task.get_outlet_defs()),
        map_index_template=task.map_index_template,
        task_state_store=TaskStateStore(ti),
    )
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
    context = _of_run(dag, dag_run)
    context["params"] = _params(dag, None, dag_run)
    if start.get("ti"):
        task = dag.task_dict.get(start["ti"]["task_id"])
        ti = RuntimeTaskInstance(start["ti"], dag_run, task)
        ti.context = context
        context.update(ti=ti, task_instance=ti, task=task)
    return context


def _of_run(dag: Any, dag_run: DagRun) -> Context:
    context = Context(
        dag=dag,
        dag_run=dag_run,
        run_id=dag_run.run_id,
        conn=ConnectionAccessor(),
        macros=macros,
        var={"value": VariableAccessor(deserialize_json=False), "json": VariableAccessor(deserialize_json=True)},
        partition_key=dag_run.partition_key,
        partition_date=dag_run.partition_date,
        triggering_asset_events=TriggeringEvents(dag_run.consumed_asset_events),
    )
    context.older.update(conf=_configuration(), test_mode=False)
    context.update(_previous(dag_run))
    if dag_run.logical_date is None:
        for name in ("prev_data_interval_start_success", "prev_data_interval_end_success"):
            del context[name]
    else:
        context.update(_dates(dag_run))
    return context


def _dates(dag_run: DagRun) -> dict[str, Any]:
    date = dag_run.logical_date
    ts = date.isoformat()
    found = {
        "logical_date": date,
        "ds": date.strftime("%Y-%m-%d"),
        "ds_nodash": date.strftime("%Y%m%d"),
        "ts": ts,
        "ts_nodash": date.strftime("%Y%m%dT%H%M%S"),
        "ts_nodash_with_tz": ts_nodash_with_tz_filter(date),
    }
    if dag_run.data_interval_start is not None:
        found["data_interval_start"] = dag_run.data_interval_start
        found["data_interval_end"] = dag_run.data_interval_end
    return found


def _previous(dag_run: DagRun) -> dict[str, Any]:
    """The ``prev_…_success`` names: one question, asked when one of them is used."""
    answer: list[Any] = []

    def field(name: str) -> Any:
        if not answer:
            answer.append(_ask_previous(dag_run))
        return moment((answer[0] or {}).get(name))

    return {
        "prev_data_interval_start_success": Lazy(lambda: field("data_interval_start")),
        "prev_data_interval_end_success": Lazy(lambda: field("data_interval_end")),
        "prev_start_date_success": Lazy(lambda: field("start_date")),
        "prev_end_date_success": Lazy(lambda: field("end_date")),
    }


def _ask_previous(dag_run: DagRun) -> Any:
    from scheduler_app.sdk.runtime import current_port

    if dag_run.logical_date is None:
        return None
    return current_port().get_previous_run(dag_id=dag_run.dag_id, logical_date=dag_run.logical_date, state="success")


def _params(dag: Any, task: Any, dag_run: DagRun) -> dict[str, Any]:
    """The DAG's params, overridden by the task's, overridden by the run's conf; checked against their schemas."""
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


def _configuration() -> Any:
    from scheduler_app.sdk.configuration import conf

    return conf
