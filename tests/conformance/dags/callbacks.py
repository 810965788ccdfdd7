"""Callbacks of tasks and DAGs: when they are called, what they are told, and that a broken one stops nothing."""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta

import pendulum
from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator
from airflow.sdk import DAG, BaseNotifier, task
from airflow.sensors.python import PythonSensor

OUT = os.environ.get("CONFORMANCE_OUT", "/tmp/conformance.jsonl")
START = pendulum.datetime(2024, 1, 1)
SECOND = timedelta(seconds=1)


def write(**row):
    with open(OUT, "a") as file:
        file.write(json.dumps(row) + "\n")


def told(event):
    def callback(context):
        ti = context["ti"]
        error = context.get("exception")
        write(
            dag=ti.dag_id,
            run=context["run_id"],
            task=ti.task_id,
            index=ti.map_index,
            event=event,
            tries=ti.try_number,
            error=type(error).__name__ if error else None,
            state=str(getattr(ti.state, "value", ti.state)),
        )

    return callback


def of_dag(event):
    def callback(context):
        write(
            dag=context["dag"].dag_id,
            run=context["run_id"],
            event=event,
            state=str(getattr(context["dag_run"].state, "value", context["dag_run"].state)),
            reason=context.get("reason"),
        )

    return callback


ALL = {
    "on_execute_callback": told("execute"),
    "on_success_callback": told("success"),
    "on_failure_callback": told("failure"),
    "on_retry_callback": told("retry"),
    "on_skipped_callback": told("skipped"),
}


def boom():
    raise KeyError("boom")


def skip():
    raise AirflowSkipException("skip")


def final():
    raise AirflowFailException("final")


with DAG(
    "callbacks_of_tasks",
    schedule=None,
    start_date=START,
    default_args=ALL,
    on_success_callback=of_dag("dag_success"),
    on_failure_callback=of_dag("dag_failure"),
):
    PythonOperator(task_id="good", python_callable=lambda: 1)
    PythonOperator(task_id="final", python_callable=final, retries=3)
    PythonOperator(task_id="retried", python_callable=boom, retries=1, retry_delay=SECOND) >> EmptyOperator(
        task_id="blocked"
    )
    PythonOperator(task_id="skipper", python_callable=skip) >> EmptyOperator(task_id="skipped_below")
    PythonOperator(task_id="slow", python_callable=lambda: time.sleep(20), execution_timeout=SECOND)
    EmptyOperator(task_id="empty_default")
    PythonSensor(task_id="sensor_soft", python_callable=lambda: False, poke_interval=0.5, timeout=1, soft_fail=True)
    PythonSensor(task_id="sensor_timeout", python_callable=lambda: False, poke_interval=0.5, timeout=1)

    @task
    def mapped(n):
        return 1 // n

    mapped.expand(n=[0, 1])

with DAG("callbacks_broken", schedule=None, start_date=START, on_success_callback=[of_dag("first"), of_dag("second")]):

    def breaks(context):
        raise RuntimeError("callback")

    PythonOperator(task_id="success", python_callable=lambda: 1, on_success_callback=[breaks, told("after_broken")])
    PythonOperator(task_id="execute", python_callable=lambda: 1, on_execute_callback=[breaks, told("after_broken")])
    PythonOperator(
        task_id="failure", python_callable=boom, on_failure_callback=[breaks, told("after_broken")]
    ) >> EmptyOperator(task_id="cleanup", trigger_rule="all_done")

with DAG(
    "callbacks_dag_failure",
    schedule=None,
    start_date=START,
    on_failure_callback=of_dag("dag_failure"),
    on_success_callback=of_dag("dag_success"),
):
    PythonOperator(task_id="bad", python_callable=boom) >> EmptyOperator(task_id="after")

with DAG(
    "callbacks_dag_timeout",
    schedule=None,
    start_date=START,
    dagrun_timeout=timedelta(seconds=3),
    on_failure_callback=of_dag("dag_failure"),
):
    PythonOperator(task_id="slow", python_callable=lambda: time.sleep(60))


class Note(BaseNotifier):
    template_fields = ("message",)

    def __init__(self, message):
        super().__init__()
        self.message = message

    def notify(self, context):
        write(dag=context["dag"].dag_id, run=context["run_id"], event="note", message=self.message)


with DAG(
    "callbacks_notifier",
    schedule=None,
    start_date=START,
    on_success_callback=Note("run {{ run_id }} of {{ dag.dag_id }}"),
):
    PythonOperator(
        task_id="one",
        python_callable=lambda: 1,
        on_success_callback=[Note("{{ ti.task_id }} on {{ ds }}"), told("beside")],
    )
    PythonOperator(
        task_id="two",
        python_callable=boom,
        on_failure_callback=Note("{{ ti.task_id }}: {{ exception.__class__.__name__ }}"),
    ) >> EmptyOperator(task_id="end", trigger_rule="all_done")
