"""Tasks that run, wait and follow each other while the database is away."""

import os
import time
from datetime import datetime, timedelta

from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor
from airflow.sdk import dag, task

SECONDS = float(os.environ.get("LEDGER_SECONDS", "10"))
QUEUE = os.environ.get("LEDGER_QUEUE", "default")
#: Where the long tasks run: the first of the executors, and, where there is one, a worker of another machine.
PLACES = {"local": {}} | ({"celery": {"executor": "CeleryExecutor"}} if os.environ.get("OUTAGE_CELERY") else {})


def note(what, ti):
    line = f"{what} {ti.task_id} {ti.try_number} {os.getpid()}\n"
    handle = os.open(os.environ["LEDGER_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, line.encode())
    os.close(handle)


@dag(
    dag_id="outage",
    schedule=None,
    start_date=datetime(2024, 1, 1),
    is_paused_upon_creation=False,
    max_active_tasks=100,
    default_args={"queue": QUEUE, "retries": 3, "retry_delay": timedelta(seconds=0.5)},
)
def outage():
    @task
    def work(seconds, ti=None):
        note("begin", ti)
        time.sleep(seconds)
        note("end", ti)

    after = work.override(task_id="after")(0)
    for place, extra in PLACES.items():
        for number in range(3):
            #: ends after the database is back
            work.override(task_id=f"long_{place}_{number}", **extra)(SECONDS) >> after
            #: ends while it is away
            work.override(task_id=f"ends_meanwhile_{place}_{number}", **extra)(SECONDS / 3) >> after
    previous = None
    for number in range(8):
        step = work.override(task_id=f"step_{number}")(SECONDS / 8)
        if previous is not None:
            previous >> step
        previous = step
    previous >> after
    TimeDeltaSensor(task_id="waits", delta=timedelta(seconds=SECONDS / 2), deferrable=True) >> after


outage()
