"""Branches and trigger rules: one task decides which of its followers run, the others are skipped.

``collect`` runs although one of its upstream tasks was skipped, because its rule asks for less than "all succeeded".
``only_if_large`` shows a short circuit: when its condition is false, everything after it is skipped.
"""

from datetime import datetime

from airflow import DAG
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import BranchPythonOperator, PythonOperator, ShortCircuitOperator


def choose(params: dict) -> str:
    """Returns the id of the task that shall run."""
    return "big_batch" if params["rows"] > 1000 else "small_batch"


with DAG(
    dag_id="choose_a_path",
    description="A branch, a join, and a short circuit",
    doc_md=__doc__,
    schedule=None,
    start_date=datetime(2026, 1, 1),
    params={"rows": 250},
    default_args={"owner": "examples"},
    tags=["example", "classic", "branching"],
):
    decide = BranchPythonOperator(task_id="decide", python_callable=choose)
    small = EmptyOperator(task_id="small_batch")
    big = PythonOperator(task_id="big_batch", python_callable=lambda: print("a lot of work"))
    collect = EmptyOperator(task_id="collect", trigger_rule="none_failed_min_one_success")
    only_if_large = ShortCircuitOperator(task_id="only_if_large", python_callable=lambda params: params["rows"] > 1000)
    archive = EmptyOperator(task_id="archive")

    decide >> [small, big] >> collect >> only_if_large >> archive
