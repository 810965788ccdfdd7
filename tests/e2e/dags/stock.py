"""Two plain tasks, in a DAG of its own for each flow that triggers, holds, releases and fills in the past."""

from datetime import datetime

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

for dag_id in ("stock_held", "stock_keys"):
    with DAG(dag_id=dag_id, schedule=None, start_date=datetime(2026, 1, 1), tags=["shop"]):
        BashOperator(task_id="count", bash_command="echo counted") >> BashOperator(
            task_id="order", bash_command="echo ordered"
        )

with DAG(dag_id="stock_daily", schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False):
    BashOperator(task_id="count", bash_command="echo counted")
