"""Tables and functions of Airflow's own database: importable, so that a file that names one loads; using one says what
to use in its place."""

from __future__ import annotations

from typing import Any, NoReturn

_INSTEAD = "task code has no database: use the methods of ti and dag_run, or the REST API."
_OF_FILES = "a DAG file cannot read other DAG files: use ExternalTaskSensor or TriggerDagRunOperator."


class _NotHere(type):
    """A class that is there for annotations and isinstance alone."""

    instead: str

    def __call__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"{cls.__name__}(): {cls.instead}")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise RuntimeError(f"{cls.__name__}.{name}: {cls.instead}")


def _table(name: str, instead: str = _INSTEAD) -> Any:
    return _NotHere(name, (), {"instead": instead, "__doc__": f"Not here: {instead}"})


AssetEvent = _table("AssetEvent", "task code has no database: use inlet_events, or the REST API.")
AssetModel = _table("AssetModel", "task code has no database: use Asset, or the REST API.")
Base = _table("Base", "models of your own belong to a Django application.")
DagBag = _table("DagBag", _OF_FILES)
DagCode = _table("DagCode")
DagModel = _table("DagModel")
DagTag = _table("DagTag")
Job = _table("Job")
Log = _table("Log")
Pool = _table("Pool")
RenderedTaskInstanceFields = _table("RenderedTaskInstanceFields")
SerializedDagModel = _table("SerializedDagModel", _OF_FILES)
TaskReschedule = _table("TaskReschedule")
Trigger = _table("Trigger")


def clear_task_instances(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(f"clear_task_instances(): {_INSTEAD}")


def trigger_dag(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError("trigger_dag(): task code has no database: use TriggerDagRunOperator, or the REST API.")
