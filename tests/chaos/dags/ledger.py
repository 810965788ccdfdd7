"""Tasks that write down that they began and ended. With LEDGER_MIX: of every kind that a siege asks for.

Of the mix a tenth shares a narrow pool, a tenth is one mapped task with a limit of its own, a twentieth defers, and one
task runs for LEDGER_LONG seconds. ``tests.chaos.limits`` knows the limits.
"""

import os
import time
from datetime import datetime, timedelta

from airflow.sdk import dag, task
from ledgerbook import note
from pauses import Pause

#: A play does harm once; a siege kills again and again.
RETRIES = int(os.environ.get("LEDGER_RETRIES", "3"))
COUNT = int(os.environ.get("LEDGER_TASKS", "200"))
SECONDS = float(os.environ.get("LEDGER_SECONDS", "0.2"))
LONG = float(os.environ.get("LEDGER_LONG", "0"))
QUEUE = os.environ.get("LEDGER_QUEUE", "default")
MIX = bool(os.environ.get("LEDGER_MIX"))


@dag(
    schedule=None,
    start_date=datetime(2024, 1, 1),
    catchup=False,
    max_active_tasks=24 if MIX else 1000,
    is_paused_upon_creation=False,
    default_args={"queue": QUEUE, "retries": RETRIES, "retry_delay": timedelta(seconds=0.5)},
)
def ledger():
    @task
    def work(seconds=SECONDS, ti=None):
        note("begin", ti)
        time.sleep(seconds)
        note("end", ti)

    @task(max_active_tis_per_dag=5)
    def spread(number, ti=None):
        note("begin", ti)
        time.sleep(SECONDS)
        note("end", ti)

    if not MIX:
        for number in range(COUNT):
            work.override(task_id=f"work_{number}")()
        return
    # the longest first: it is still there when most of the others are done
    work.override(task_id="marathon", priority_weight=100)(seconds=LONG)
    spread.expand(number=list(range(COUNT // 10)))
    for number in range(COUNT - COUNT // 10 - 1):
        if number % 20 == 0:
            Pause(task_id=f"pause_{number}", seconds=0.5)
        elif number % 10 == 1:
            work.override(task_id=f"narrow_{number}", pool="narrow", pool_slots=1 + number % 20 // 10)()
        else:
            work.override(task_id=f"work_{number}")()


ledger()
