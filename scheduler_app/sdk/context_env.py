"""The context as environment variables of commands (``AIRFLOW_CTX_DAG_ID`` and so on)."""

from __future__ import annotations

from typing import Any


def context_to_environment(context: Any) -> dict[str, str]:
    """Names and texts; what the run does not have is left out."""
    dag_run, ti, task = context.get("dag_run"), context.get("ti"), context.get("task")
    values = {
        "AIRFLOW_CTX_DAG_OWNER": getattr(task, "owner", None),
        "AIRFLOW_CTX_DAG_EMAIL": ",".join(getattr(task, "email", None) or ()),
        "AIRFLOW_CTX_DAG_ID": getattr(ti, "dag_id", None),
        "AIRFLOW_CTX_TASK_ID": getattr(ti, "task_id", None),
        "AIRFLOW_CTX_LOGICAL_DATE": _iso(context.get("logical_date")),
        "AIRFLOW_CTX_EXECUTION_DATE": _iso(context.get("logical_date")),
        "AIRFLOW_CTX_TRY_NUMBER": getattr(ti, "try_number", None),
        "AIRFLOW_CTX_DAG_RUN_ID": getattr(dag_run, "run_id", None),
    }
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def _iso(value: Any) -> str | None:
    return None if value is None else value.isoformat()
