"""A DAG with params of several kinds. ``fetch`` waits until the test opens the gate, so that it can be watched."""

import os
import time
from datetime import datetime
from pathlib import Path

from airflow.sdk import DAG, Param, task

with DAG(
    dag_id="orders_daily",
    description="Sums up a day's orders",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    tags=["shop"],
    params={
        "rows": Param(10, type="integer", minimum=1, maximum=50, title="Rows to read"),
        "kind": Param("full", enum=["full", "sample"], description="How much of the day is read"),
        "limits": Param({"eu": 3}, type="object", additionalProperties={"type": "integer"}),
    },
):

    @task
    def fetch(params: dict) -> list:
        gate = Path(os.environ["E2E_FOLDER"], "gate")
        while not gate.exists():
            time.sleep(0.05)
        return list(range(params["rows"]))

    @task
    def total(rows: list) -> int:
        print(f"{len(rows)} rows, {sum(rows)} in all")
        return sum(rows)

    @task
    def publish(amount: int) -> None:
        print(f"published {amount}")

    publish(total(fetch()))
