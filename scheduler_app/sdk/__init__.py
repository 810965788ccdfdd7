"""What a DAG author imports. ``from scheduler_app.sdk import DAG, task`` works as ``from airflow.sdk import …`` does.

Names are looked up when asked for, so that importing the package costs nothing. The table of names is
``airflow_shim/names.py``'s for ``airflow.sdk``; here are the modules that hold them.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

#: module of this package → the names that it gives to authors
PUBLIC: dict[str, tuple[str, ...]] = {
    "dag": ("DAG", "dag"),
    "decorators": ("task", "task_group", "setup", "teardown"),
    "operator": ("BaseOperator",),
    "sensor_base": ("BaseSensorOperator", "PokeReturnValue"),
    "operators.branch": ("BaseBranchOperator", "BranchMixIn", "SkipMixin"),
    "operators.bash": ("BashOperator",),
    "operators.empty": ("EmptyOperator",),
    "operators.python": ("PythonOperator", "BranchPythonOperator", "ShortCircuitOperator"),
    "edges": ("Label", "chain", "chain_linear", "cross_downstream"),
    "task_group": ("TaskGroup",),
    "xcom_arg": ("XComArg",),
    "params": ("Param", "ParamsDict"),
    "assets": ("Asset", "AssetAlias", "AssetAll", "AssetAny", "AssetWatcher", "Dataset", "Metadata"),
    "decorators.asset": ("asset",),
    "context": ("Context", "get_current_context"),
    "variable": ("Variable",),
    "connection": ("BaseHook", "Connection"),
    "xcom": ("XCom",),
    "states": ("DagRunState", "TaskInstanceState", "TriggerRule", "WeightRule"),
    "triggers.base": ("BaseTrigger", "TriggerEvent", "StartTriggerArgs"),
    "notifier": ("BaseNotifier",),
    "templates": ("literal",),
    "limits": ("Limit", "Rate"),
}
_WHERE = {name: module for module, names in PUBLIC.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"scheduler_app.sdk has no {name!r}.")
    value = getattr(importlib.import_module(f"scheduler_app.sdk.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


class _Sdk(ModuleType):
    """Importing the module ``sdk.dag`` would put it in the place of the decorator ``dag``; the names of authors win."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (isinstance(value, ModuleType) and name in _WHERE):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Sdk
