"""The rule of teardowns (all_done_setup_success) against setups that succeeded, failed, were skipped, or never ran."""

from __future__ import annotations

import pendulum
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.providers.standard.operators.python import PythonOperator
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowSkipException


def fail() -> None:
    raise ValueError("on purpose")


def skip() -> None:
    raise AirflowSkipException("on purpose")


def node(name: str, how: str) -> PythonOperator:
    act = {"s": lambda: name, "f": fail, "k": skip}[how]
    return PythonOperator(task_id=name, python_callable=act)


with DAG("rule_setups", schedule=None, start_date=pendulum.datetime(2024, 1, 1)):
    for setups in ("s", "f", "k", "ss", "sf", "sk", "ff", "fk"):
        made = [node(f"{setups}_setup{i}", how).as_setup() for i, how in enumerate(setups)]
        work = EmptyOperator(task_id=f"{setups}_work")
        down = node(f"{setups}_down", "s").as_teardown(setups=made)
        made >> work >> down
    # work between that fails or is skipped
    for how in "fk":
        up = node(f"w{how}_setup", "s").as_setup()
        (
            up
            >> node(f"w{how}_work", how)
            >> EmptyOperator(task_id=f"w{how}_next")
            >> node(f"w{how}_down", "s").as_teardown(setups=up)
        )
    # a setup that never ran because what is before it failed
    before = node("before", "f")
    late = node("late_setup", "s").as_setup()
    before >> late >> EmptyOperator(task_id="late_work") >> node("late_down", "s").as_teardown(setups=late)
    # a teardown without a setup
    node("alone_work", "f") >> node("alone_down", "s").as_teardown()
