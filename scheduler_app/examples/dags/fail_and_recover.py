"""Retries and callbacks: a task that fails twice before it succeeds, and functions that hear of it.

The log of each try stays. Callbacks run in a process of their own, after the state was stored; the log of
the DAG processor shows theirs.
"""

import logging
from datetime import datetime, timedelta

from airflow import DAG
from airflow.operators.python import PythonOperator

log = logging.getLogger(__name__)


def works_the_third_time(ti) -> str:
    if ti.try_number < 3:
        raise RuntimeError(f"Try {ti.try_number} fails on purpose.")
    return "It worked."


def tell(what: str):
    """A callback takes the context of the task or run that it is about."""

    def callback(context) -> None:
        log.info("%s: %s of run %s", what, context["ti"].task_id, context["run_id"])

    return callback


def run_ended(context) -> None:
    log.info("Run %s of %s succeeded", context["run_id"], context["dag"].dag_id)


with DAG(
    dag_id="fail_and_recover",
    description="Two failures on purpose, then success",
    doc_md=__doc__,
    schedule=None,
    start_date=datetime(2026, 1, 1),
    on_success_callback=run_ended,
    default_args={"owner": "examples"},
    tags=["example", "classic", "retries"],
):
    PythonOperator(
        task_id="stubborn",
        python_callable=works_the_third_time,
        retries=3,
        retry_delay=timedelta(seconds=5),
        on_retry_callback=tell("will be tried again"),
        on_success_callback=tell("succeeded at last"),
        on_failure_callback=tell("gave up"),
    )
