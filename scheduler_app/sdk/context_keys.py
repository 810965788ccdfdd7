"""The names of the context. A function argument of such a name is filled at run time."""

from __future__ import annotations

CONTEXT_KEYS: frozenset[str] = frozenset(
    {
        "asset_state_store", "conf", "conn", "dag", "dag_run", "data_interval_end", "data_interval_start", "ds", "ds_nodash",
        "expanded_ti_count", "exception", "inlets", "inlet_events", "logical_date", "macros", "map_index_template",
        "outlets", "outlet_events", "params", "partition_key", "partition_date", "prev_data_interval_start_success",
        "prev_data_interval_end_success", "prev_start_date_success", "prev_end_date_success", "reason", "run_id", "start_date",
        "task", "task_instance", "task_instance_key_str", "task_reschedule_count", "task_state_store", "templates_dict",
        "test_mode", "ti", "triggering_asset_events", "ts", "ts_nodash", "ts_nodash_with_tz", "try_number", "var",
    }
)  # fmt: skip
