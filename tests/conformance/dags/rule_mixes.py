"""Every trigger rule that the mixes of parent states can tell apart: succeeded, failed, skipped, upstream failed."""

from __future__ import annotations

import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSkipException

RULES = (
    "all_failed",
    "all_done_min_one_success",
    "all_skipped",
    "always",
    "none_failed",
    "none_skipped",
    "one_done",
    "one_success",
    "all_success",
)
MIXES = ("s", "f", "k", "u", "sf", "sk", "su", "fk", "fu", "ku", "sfk", "sku", "sfku")


def fail() -> None:
    raise ValueError("on purpose")


def skip() -> None:
    raise AirflowSkipException("on purpose")


for rule in RULES:
    with DAG(f"rule_{rule}", schedule=None, start_date=pendulum.datetime(2024, 1, 1)):
        failed = PythonOperator(task_id="failed", python_callable=fail)
        parents = {
            "s": EmptyOperator(task_id="succeeded"),
            "f": failed,
            "u": EmptyOperator(task_id="blocked"),
            "k": PythonOperator(task_id="skipped", python_callable=skip, trigger_rule="all_done"),
        }
        # Succeeded, failed, blocked, skipped: always in this order, so that rules which decide early decide alike.
        parents["s"] >> failed >> [parents["u"], parents["k"]]
        for mix in MIXES:
            child = EmptyOperator(task_id=f"mix_{mix}", trigger_rule=rule)
            for letter in mix:
                parents[letter] >> child
        EmptyOperator(task_id="no_parents", trigger_rule=rule)
