"""Setups and teardowns beyond the rule itself: nesting, context managers, groups, leaves, and what decides the run."""

from __future__ import annotations

import pendulum
from airflow.decorators import setup, task, task_group, teardown
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator
from airflow.sdk import DAG

START = pendulum.datetime(2024, 1, 1)


def fail() -> None:
    raise ValueError("on purpose")


with DAG("setup_nested", schedule=None, start_date=START):

    @setup
    def cluster():
        return "cluster"

    @setup
    def table(c):
        return f"table in {c}"

    @teardown
    def drop_table(t):
        return f"dropped {t}"

    @teardown
    def drop_cluster(c):
        return f"dropped {c}"

    @task
    def load(t):
        raise ValueError(t)

    @task
    def report():
        return "never"

    c = cluster()
    t = table(c)
    with drop_cluster(c).as_teardown(setups=c):
        with drop_table(t).as_teardown(setups=t):
            load(t) >> report()

with DAG("setup_context_manager", schedule=None, start_date=START):

    @setup
    def open_it():
        return 1

    @teardown
    def close_it():
        return 2

    @task
    def use(n):
        return n

    opened = open_it()
    with opened >> close_it():
        use(5) >> use.override(task_id="use_again")(6)
    EmptyOperator(task_id="outside")

with DAG("setup_teardown_decides", schedule=None, start_date=START):
    up = EmptyOperator(task_id="up").as_setup()
    work = EmptyOperator(task_id="work")
    down = PythonOperator(task_id="down", python_callable=fail).as_teardown(setups=up, on_failure_fail_dagrun=True)
    up >> work >> down

with DAG("setup_teardown_does_not_decide", schedule=None, start_date=START):
    up = EmptyOperator(task_id="up").as_setup()
    work = EmptyOperator(task_id="work")
    down = PythonOperator(task_id="down", python_callable=fail).as_teardown(setups=up)
    up >> work >> down >> EmptyOperator(task_id="after_down")

with DAG("setup_only_teardown_leaf", schedule=None, start_date=START):
    up = PythonOperator(task_id="up", python_callable=fail).as_setup()
    down = EmptyOperator(task_id="down").as_teardown(setups=up)
    up >> down

with DAG("setup_in_groups", schedule=None, start_date=START):

    @task_group
    def section(name):
        @setup
        def make():
            return name

        @task
        def work():
            if name == "second":
                raise ValueError(name)
            return name

        @teardown
        def clean():
            return f"clean {name}"

        made = make()
        made >> work() >> clean().as_teardown(setups=made)

    (
        section.override(group_id="first")("first")
        >> section.override(group_id="second")("second")
        >> EmptyOperator(task_id="after")
    )

with DAG("setup_two_teardowns", schedule=None, start_date=START):
    one = EmptyOperator(task_id="one").as_setup()
    two = PythonOperator(task_id="two", python_callable=fail).as_setup()
    work = EmptyOperator(task_id="work")
    [one, two] >> work
    work >> EmptyOperator(task_id="down_one").as_teardown(setups=one)
    work >> EmptyOperator(task_id="down_two").as_teardown(setups=two)
    work >> EmptyOperator(task_id="down_both").as_teardown(setups=[one, two])

with DAG("setup_mapped_work", schedule=None, start_date=START):

    @setup
    def prepare():
        return [1, 2, 3]

    @task
    def double(n):
        if n == 2:
            raise ValueError(n)
        return n * 2

    @teardown
    def finish():
        return "finished"

    prepared = prepare()
    double.expand(n=prepared) >> finish().as_teardown(setups=prepared)

with DAG("setup_mapped_group", schedule=None, start_date=START):

    @task_group
    def each(n):
        @setup
        def up(n):
            if n == 3:
                raise ValueError(n)
            return n

        @task
        def work(n):
            if n == 2:
                raise ValueError(n)
            return n

        @teardown
        def down():
            return "down"

        u = up(n)
        u >> work(n) >> down().as_teardown(setups=u)

    each.expand(n=[1, 2, 3]) >> EmptyOperator(task_id="after", trigger_rule="all_done")

with DAG("setup_short_circuit", schedule=None, start_date=START):

    @task.short_circuit
    def gate():
        return False

    up = EmptyOperator(task_id="up").as_setup()
    down = EmptyOperator(task_id="down").as_teardown(setups=up)
    up >> gate() >> EmptyOperator(task_id="work") >> EmptyOperator(task_id="work_2", trigger_rule="all_done") >> down
