"""What a script drives over the API: ``book`` fails until there are a variable and a connection."""

from datetime import datetime

from airflow.sdk import DAG, BaseHook, Variable, task

with DAG(dag_id="invoices", schedule=None, start_date=datetime(2026, 1, 1), tags=["billing"]):

    @task
    def collect(dag_run) -> list:
        print(f"collecting {dag_run.conf['count']} invoices")
        return list(range(dag_run.conf["count"]))

    @task
    def book(invoices: list) -> str:
        rate = float(Variable.get("invoice_rate"))
        bank = BaseHook.get_connection("bank")
        print(f"booking {len(invoices)} invoices")
        return f"{sum(invoices) * rate} at {bank.host}"

    @task
    def archive() -> None:
        print("archived")

    book(collect()) >> archive()
