"""Runs that start runs: waiting, deferring, refusing, skipping when they exist; sensors of other DAGs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pendulum
from airflow.exceptions import AirflowSkipException
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator
from airflow.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Param, task
from airflow.sensors.external_task import ExternalTaskMarker, ExternalTaskSensor
from airflow.utils.task_group import TaskGroup

START = pendulum.datetime(2024, 1, 1)

with DAG("triggering_child", schedule=None, start_date=START, params={"n": Param(1, type="integer")}):

    def act(dag_run, params):
        if dag_run.conf.get("fail"):
            raise ValueError("told to")
        return [dag_run.conf, params["n"], str(dag_run.run_type)]

    PythonOperator(task_id="act", python_callable=act)

with DAG("triggering_parent", schedule=None, start_date=START):
    base = {"trigger_dag_id": "triggering_child", "reset_dag_run": True, "poke_interval": 1}
    chain = TriggerDagRunOperator(task_id="plain", trigger_run_id="plain", logical_date="{{ logical_date }}", **base)
    for name, more in {
        "no_date": {"logical_date": None},
        "as_datetime": {"logical_date": datetime(2024, 2, 2, tzinfo=timezone.utc), "conf": {"n": 4}},
        "deferred": {"logical_date": "2024-02-03", "wait_for_completion": True, "deferrable": True},
        "deferred_fails": {
            "logical_date": "2024-02-04",
            "wait_for_completion": True,
            "deferrable": True,
            "conf": {"fail": 1},
        },
        "failed_allowed": {
            "logical_date": "2024-02-05",
            "wait_for_completion": True,
            "conf": {"fail": 1},
            "allowed_states": ["failed"],
            "failed_states": ["success"],
        },
        "bad_params": {"logical_date": "2024-02-06", "conf": {"n": "text"}},
        "templated": {
            "trigger_run_id": "run_{{ ds }}",
            "logical_date": "2024-02-07",
            "conf": '{"n": 7, "from": "{{ run_id }}"}',
        },
        "bad_conf": {"logical_date": "2024-02-08", "conf": {"x": "{{ ds }}", "bad": START}},
        "timedelta_later": {"logical_date": "2024-02-09", "note": "a note"},
    }.items():
        following = TriggerDagRunOperator(
            **{"task_id": name, "trigger_run_id": name, "trigger_rule": "all_done", **base, **more}
        )
        chain >> following
        chain = following
    twice = {
        "trigger_dag_id": "triggering_child",
        "trigger_run_id": "plain",
        "trigger_rule": "all_done",
        "logical_date": "2024-02-10",
    }
    again = TriggerDagRunOperator(task_id="exists", **twice)
    skipped = TriggerDagRunOperator(task_id="exists_skips", skip_when_already_exists=True, **twice)
    chain >> again >> skipped >> EmptyOperator(task_id="after_skip")

with DAG("watched", schedule=None, start_date=START):

    def fail():
        raise ValueError

    def skip():
        raise AirflowSkipException

    EmptyOperator(task_id="good")
    PythonOperator(task_id="bad", python_callable=fail)
    PythonOperator(task_id="skipped", python_callable=skip)
    with TaskGroup("group"):
        EmptyOperator(task_id="one")
        PythonOperator(task_id="two", python_callable=fail)

    @task
    def mapped(n):
        return n

    mapped.expand(n=[1, 2])

with DAG("watching", schedule=None, start_date=START):
    common = {"external_dag_id": "watched", "poke_interval": 0.5, "timeout": 3}
    for name, more in {
        "good": {"external_task_id": "good"},
        "deferred": {"external_task_id": "good", "deferrable": True, "timeout": 60},
        "deferred_fails": {"external_task_id": "bad", "failed_states": ["failed"], "deferrable": True, "timeout": 60},
        "deferred_timeout": {"external_task_id": "bad", "deferrable": True},
        "bad_times_out": {"external_task_id": "bad"},
        "bad_soft": {"external_task_id": "bad", "soft_fail": True},
        "skip_as_done": {"external_task_id": "skipped", "allowed_states": ["skipped"]},
        "skip_skips": {"external_task_id": "skipped", "skipped_states": ["skipped"]},
        "group_fails": {"external_task_group_id": "group", "failed_states": ["failed"]},
        "group_ends": {"external_task_group_id": "group", "allowed_states": ["success", "failed"]},
        "tasks": {"external_task_ids": ["good", "group.one"]},
        "tasks_one_bad": {"external_task_ids": ["good", "bad"], "failed_states": ["failed"]},
        "run_failed": {"failed_states": ["failed"]},
        "run_any": {"allowed_states": ["failed"]},
        "by_delta": {"external_task_id": "good", "execution_delta": timedelta(0)},
        "by_function": {"external_task_id": "good", "execution_date_fn": lambda d, **_: [d]},
        "by_function_two": {"external_task_id": "good", "execution_date_fn": lambda d: [d, d - timedelta(days=1)]},
        "template": {"external_task_id": "{{ 'go' + 'od' }}"},
        "missing_group": {"external_task_group_id": "nowhere", "check_existence": True},
    }.items():
        ExternalTaskSensor(**{"task_id": name, **common, **more})
    ExternalTaskMarker(task_id="marker", external_dag_id="watched", external_task_id="good")
