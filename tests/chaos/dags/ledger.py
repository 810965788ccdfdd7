"""Tasks that write one line when a hand-out reaches them and one when it ends well."""

import os
import time
from datetime import datetime, timedelta

from airflow.sdk import dag, task

#: A play does harm once; a siege kills again and again.
RETRIES = int(os.environ.get("LEDGER_RETRIES", "3"))
COUNT = int(os.environ.get("LEDGER_TASKS", "200"))
SECONDS = float(os.environ.get("LEDGER_SECONDS", "0.2"))
QUEUE = os.environ.get("LEDGER_QUEUE", "default")


def note(what, ti):
    line = f"{what} {ti.task_id} {ti.try_number} {os.getpid()}\n"
    handle = os.open(os.environ["LEDGER_FILE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, line.encode())
    os.close(handle)


@dag(
    schedule=None,
    start_date=datetime(2024, 1, 1),
    catchup=False,
    max_active_tasks=1000,
    is_paused_upon_creation=False,
    default_args={"queue": QUEUE, "retries": RETRIES, "retry_delay": timedelta(seconds=0.5)},
)
def ledger():
    @task
    def work(ti=None):
        note("begin", ti)
        time.sleep(SECONDS)
        note("end", ti)

    for number in range(COUNT):
        work.override(task_id=f"work_{number}")()


ledger()
