"""Tries: delays, back-off, what ends a task at once, fail_fast, limits on time, and how a process may end."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import timedelta

import pendulum
from airflow.exceptions import AirflowException, AirflowFailException, AirflowSkipException, AirflowTaskTimeout
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator
from airflow.sdk import DAG, task

START = pendulum.datetime(2024, 1, 1)
SECOND = timedelta(seconds=1)

with DAG("retrying_delays", schedule=None, start_date=START, default_args={"retry_delay": SECOND}):

    @task(retries=2, retry_exponential_backoff=True, max_retry_delay=timedelta(seconds=2))
    def backs_off():
        raise ValueError("again")

    @task(retries=1, retry_delay=1)
    def delay_in_seconds():
        raise ValueError("again")

    @task(retries=3)
    def changes_its_mind(ti=None):
        if ti.try_number == 1:
            raise ValueError("again")
        raise AirflowSkipException("enough")

    @task(retries=3)
    def gives_up(ti=None):
        if ti.try_number == 1:
            raise ValueError("again")
        raise AirflowFailException("enough")

    @task(retries=1)
    def sees(ti=None):
        if ti.try_number == 1:
            raise ValueError("again")
        return [ti.try_number, ti.max_tries, ti.task.retries]

    backs_off()
    delay_in_seconds()
    changes_its_mind() >> EmptyOperator(task_id="after_skip")
    gives_up()
    sees()

with DAG("retrying_ends", schedule=None, start_date=START, default_args={"retries": 1, "retry_delay": SECOND}):

    @task
    def exits_zero():
        sys.exit(0)

    @task
    def exits_three():
        sys.exit(3)

    @task
    def kills_itself():
        os.kill(os.getpid(), signal.SIGKILL)

    @task
    def terminates_itself():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)

    @task
    def interrupts():
        raise KeyboardInterrupt

    @task
    def base_exception():
        raise BaseException("bare")

    @task(execution_timeout=SECOND)
    def too_long():
        time.sleep(30)

    @task(execution_timeout=SECOND)
    def catches_timeout():
        try:
            time.sleep(30)
        except AirflowTaskTimeout:
            return "caught"

    @task
    def hard_exit():
        os._exit(0)

    @task
    def recursion():
        return recursion.function()

    exits_zero()
    exits_three()
    kills_itself()
    terminates_itself()
    interrupts()
    base_exception()
    too_long()
    catches_timeout()
    hard_exit()
    recursion()

with DAG("retrying_fail_fast", schedule=None, start_date=START, fail_fast=True):

    @task
    def fails():
        time.sleep(1)
        raise ValueError("stop")

    @task
    def long():
        time.sleep(40)

    fails() >> EmptyOperator(task_id="blocked")
    long() >> EmptyOperator(task_id="never")

with DAG("retrying_bash", schedule=None, start_date=START, default_args={"retries": 1, "retry_delay": SECOND}):
    BashOperator(task_id="skip_code", bash_command="exit 99")
    BashOperator(task_id="own_skip_code", bash_command="exit 7", skip_on_exit_code=7)
    BashOperator(task_id="skip_codes", bash_command="exit 8", skip_on_exit_code=[7, 8])
    BashOperator(task_id="no_skip_code", bash_command="exit 99", skip_on_exit_code=None)
    BashOperator(task_id="fails", bash_command="exit 2")
    BashOperator(task_id="cwd_missing", bash_command="pwd", cwd="/no/such/folder")
    BashOperator(task_id="cwd", bash_command="pwd", cwd="/usr")
    BashOperator(task_id="env", bash_command="echo $A-$HOME", env={"A": "1"})
    BashOperator(task_id="env_kept", bash_command="echo $A-${HOME:+home}", env={"A": "1"}, append_env=True)
    BashOperator(
        task_id="processed",
        bash_command="echo '{\"a\": 1}'",
        output_processor=lambda text: __import__("json").loads(text),
    )
    BashOperator(task_id="no_output", bash_command="true")
    BashOperator(task_id="pipe", bash_command="false | echo piped")
    BashOperator(
        task_id="context",
        bash_command="echo $AIRFLOW_CTX_DAG_ID $AIRFLOW_CTX_TASK_ID $AIRFLOW_CTX_TRY_NUMBER $AIRFLOW_CTX_DAG_RUN_ID",
    )

    @task.bash
    def decorated(name):
        return f"echo {name} {{{{ ds }}}}"

    @task.bash
    def not_text():
        return 5

    decorated("deco")
    not_text()

with DAG("retrying_dag_timeout", schedule=None, start_date=START, dagrun_timeout=timedelta(seconds=20)):
    (
        PythonOperator(task_id="quick", python_callable=lambda: 1)
        >> PythonOperator(task_id="slow", python_callable=lambda: time.sleep(60), retries=2)
        >> EmptyOperator(task_id="next")
    )

with DAG("retrying_hooks", schedule=None, start_date=START):

    def before(context):
        if context["ti"].task_id == "pre_fails":
            raise AirflowException("pre")
        if context["ti"].task_id == "pre_skips":
            raise AirflowSkipException("pre")

    def after(context, result):
        if context["ti"].task_id == "post_fails":
            raise AirflowException("post")

    for name in ("pre_fails", "pre_skips", "post_fails", "works"):
        PythonOperator(task_id=name, python_callable=lambda: "result", pre_execute=before, post_execute=after)
