"""The smallest useful DAG, in the classic style: operators in a ``with`` block, joined by ``>>``.

Unpause it and press Trigger. Then look at the log of ``say_hello``: what a shell command prints ends up there.
"""

from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator


def count_letters(text: str) -> int:
    """What the function returns is kept as the task's XCom ``return_value``."""
    print(f"{text!r} has {len(text)} letters")
    return len(text)


with DAG(
    dag_id="first_steps",
    description="A shell command, a Python function, and an end",
    doc_md=__doc__,
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    default_args={"owner": "examples", "retries": 1, "retry_delay": timedelta(seconds=30)},
    tags=["example", "classic"],
):
    hello = BashOperator(
        task_id="say_hello",
        # Templates are filled in when the task runs.
        bash_command="echo 'Hello from {{ task.task_id }}! This run is called {{ run_id }}.'",
    )
    count = PythonOperator(task_id="count_letters", python_callable=count_letters, op_args=["a workflow"])
    done = EmptyOperator(task_id="done")

    hello >> count >> done
