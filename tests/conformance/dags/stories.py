"""DAGs that the stories (tests/conformance/stories.py) start, mark, clear and ask about over the API."""

from __future__ import annotations

import time

import pendulum

from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator
from airflow.sdk import DAG, Variable, task, task_group

START = pendulum.datetime(2024, 1, 1)


def fail():
    raise ValueError("on purpose")


with DAG("story_slow", schedule=None, start_date=START):
    first = PythonOperator(task_id="first", python_callable=lambda: 1)
    slow = PythonOperator(task_id="slow", python_callable=lambda: time.sleep(90), retries=3)
    first >> slow >> PythonOperator(task_id="after", python_callable=lambda: 2) >> EmptyOperator(task_id="end")
    PythonOperator(task_id="waits", python_callable=lambda: 3, trigger_rule="all_done") << slow

with DAG("story_chain", schedule=None, start_date=START, tags=["story", "chain"], description="Four in a row"):
    a = PythonOperator(task_id="a", python_callable=lambda: "a")
    b = PythonOperator(task_id="b", python_callable=fail, retries=0)
    c = PythonOperator(task_id="c", python_callable=lambda: "c")
    d = EmptyOperator(task_id="d", trigger_rule="all_done")
    a >> b >> c >> d

with DAG("story_branch", schedule=None, start_date=START):

    @task.branch
    def pick():
        return "left"

    pick() >> [EmptyOperator(task_id="left"), PythonOperator(task_id="right", python_callable=lambda: "right")]

with DAG("story_mapped", schedule=None, start_date=START):

    @task
    def numbers():
        return [1, 2, 3][: int(Variable.get("story_length", default="3"))]

    @task
    def twice(n):
        return n * 2

    twice.expand(n=numbers())

    @task_group
    def group():
        EmptyOperator(task_id="one") >> EmptyOperator(task_id="two")

    group()

with DAG(
    "story_backfill",
    schedule="@daily",
    start_date=START,
    catchup=False,
    max_active_runs=3,
    is_paused_upon_creation=True,
):
    PythonOperator(task_id="only", python_callable=lambda ds, dag_run: [ds, str(dag_run.run_id), dag_run.conf])

with DAG(
    "story_past",
    schedule="@daily",
    start_date=START,
    end_date=pendulum.datetime(2024, 1, 3),
    catchup=True,
    max_active_runs=1,
):
    PythonOperator(task_id="one", python_callable=lambda: 1) >> PythonOperator(task_id="two", python_callable=lambda: 2)
