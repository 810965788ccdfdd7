"""Limits and priorities: nine tasks are ready at once, three may run, and the important ones go first.

Trigger it and look at a waiting task: its page says which limit it waits for.
"""

import time

import pendulum
from airflow.sdk import DAG, TaskGroup, task

with DAG(
    dag_id="share_the_slots",
    description="Nine tasks, three at a time",
    doc_md=__doc__,
    schedule=None,
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    max_active_tasks=3,
    default_args={"owner": "examples"},
    tags=["example", "limits"],
):
    for name, weight in (("urgent", 100), ("normal", 10), ("whenever", 1)):
        with TaskGroup(group_id=name):
            for number in range(3):

                @task(task_id=f"work_{number}", priority_weight=weight)
                def work():
                    time.sleep(3)

                work()
