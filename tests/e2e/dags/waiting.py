"""A DAG that nobody switches on: its run waits, and its pages say why."""

from datetime import datetime

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG

with DAG(dag_id="shelves_waiting", schedule=None, start_date=datetime(2026, 1, 1)):
    EmptyOperator(task_id="wait")
