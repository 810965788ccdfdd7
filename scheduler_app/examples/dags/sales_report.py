"""Extract, transform, load in the TaskFlow style: functions are tasks, and passing a result makes an edge.

One task instance of ``total_of`` is made for each shop, while the run goes on: its number follows from what
``read_orders`` returns. Trigger it with another ``shops`` parameter to see that.
"""

import random

import pendulum
from airflow.sdk import Param, dag, task


@dag(
    dag_id="sales_report",
    description="A day's orders, summed up for each shop",
    doc_md=__doc__,
    schedule="0 6 * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="Europe/Berlin"),
    catchup=False,
    default_args={"owner": "examples"},
    params={"shops": Param(3, type="integer", minimum=1, maximum=20, description="How many shops sent orders")},
    tags=["example", "taskflow", "mapping"],
)
def sales_report():
    @task
    def read_orders(params: dict) -> list[dict]:
        """In place of a database: orders made up by chance, the same ones for the same number of shops."""
        draw = random.Random(params["shops"])
        return [
            {"shop": f"shop {number + 1}", "orders": [draw.randint(5, 90) for _ in range(4)]}
            for number in range(params["shops"])
        ]

    @task
    def total_of(sales: dict) -> dict:
        return {"shop": sales["shop"], "total": sum(sales["orders"])}

    @task(multiple_outputs=True)
    def summarise(totals: list[dict]) -> dict:
        """``multiple_outputs`` makes each key of the result an XCom of its own."""
        best = max(totals, key=lambda row: row["total"])
        return {"best_shop": best["shop"], "grand_total": sum(row["total"] for row in totals)}

    @task
    def publish(best_shop: str, grand_total: int) -> None:
        print(f"Sold for {grand_total} in all; {best_shop} sold most.")

    summary = summarise(total_of.expand(sales=read_orders()))
    publish(summary["best_shop"], summary["grand_total"])


sales_report()
