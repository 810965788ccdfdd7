"""Three ways to wait, from the dearest to the cheapest.

A sensor in *poke* mode keeps its process and its slot. In *reschedule* mode it ends after each look and is started
again for the next one. A *deferred* task has no process at all: one triggerer waits for thousands of them.
"""

from datetime import timedelta

import pendulum
from airflow.providers.standard.sensors.date_time import DateTimeSensorAsync
from airflow.providers.standard.sensors.python import PythonSensor
from airflow.sdk import DAG, task


def run_is_old_enough(dag_run) -> bool:
    return pendulum.now("UTC") >= dag_run.start_date + timedelta(seconds=6)


with DAG(
    dag_id="wait_for_things",
    description="Sensors in poke and reschedule mode, and a deferred one",
    doc_md=__doc__,
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    default_args={"owner": "examples"},
    tags=["example", "sensors"],
):

    @task
    def all_are_there():
        print("Everything that this run waited for is there.")

    [
        PythonSensor(task_id="poke", python_callable=lambda: True, poke_interval=2, timeout=60),
        PythonSensor(
            task_id="reschedule",
            python_callable=run_is_old_enough,
            mode="reschedule",
            poke_interval=timedelta(seconds=5),
            timeout=300,
        ),
        DateTimeSensorAsync(task_id="deferred", target_time="{{ dag_run.start_date + macros.timedelta(seconds=10) }}"),
    ] >> all_are_there()
