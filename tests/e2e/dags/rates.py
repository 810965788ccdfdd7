"""``load`` fails until somebody has mended what it reads: the file "mended" is the mending."""

import os
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, task

for dag_id in ("rates_broken", "rates_import", "rates_plain"):
    with DAG(dag_id=dag_id, schedule=None, start_date=datetime(2026, 1, 1), tags=["finance"]):

        @task
        def prepare() -> None:
            print("prepared")

        @task
        def load(dag_run) -> None:
            rates = {"eur": 1.0}
            if Path(os.environ["E2E_FOLDER"], f"mended-{dag_run.dag_id}").exists():
                rates["fx"] = 1.1
            print("looking up the rate")
            print(rates["fx"])

        @task
        def report() -> None:
            print("reported")

        prepare() >> load() >> report()
