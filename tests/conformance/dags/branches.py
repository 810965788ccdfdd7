"""Branches: by date, by weekday, by several arms, in groups, in mapped groups, and what a wrong answer does."""

from __future__ import annotations

from datetime import datetime, time

import pendulum
from airflow.operators.branch import BaseBranchOperator
from airflow.operators.datetime import BranchDateTimeOperator
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import BranchPythonOperator
from airflow.operators.weekday import BranchDayOfWeekOperator
from airflow.sdk import DAG, Label, task, task_group
from airflow.providers.standard.utils.weekday import WeekDay

START = pendulum.datetime(2024, 1, 1)

with DAG("branch_by_date", schedule=None, start_date=START):
    for name, lower, upper in (
        ("inside", datetime(2024, 5, 1), datetime(2024, 6, 1)),
        ("before", datetime(2024, 6, 1), datetime(2024, 7, 1)),
        ("after", datetime(2024, 4, 1), datetime(2024, 5, 1)),
        ("no_lower", None, datetime(2024, 6, 1)),
        ("no_upper", datetime(2024, 6, 1), None),
        ("time_of_day", time(8, 0), time(9, 0)),
        ("over_midnight", time(22, 0), time(9, 0)),
    ):
        BranchDateTimeOperator(
            task_id=name,
            target_lower=lower,
            target_upper=upper,
            use_task_logical_date=True,
            follow_task_ids_if_true=f"{name}_yes",
            follow_task_ids_if_false=[f"{name}_no", f"{name}_never"],
        ) >> [EmptyOperator(task_id=f"{name}_{arm}") for arm in ("yes", "no", "never")]

with DAG("branch_by_weekday", schedule=None, start_date=START):
    for name, days in (
        ("friday", "Friday"),
        ("monday", "MONDAY"),
        ("enum", WeekDay.FRIDAY),
        ("weekend", {WeekDay.SATURDAY, WeekDay.SUNDAY}),
        ("two", {"Friday", "Sunday"}),
    ):
        BranchDayOfWeekOperator(
            task_id=name,
            week_day=days,
            use_task_logical_date=True,
            follow_task_ids_if_true=[f"{name}_yes"],
            follow_task_ids_if_false=f"{name}_no",
        ) >> [EmptyOperator(task_id=f"{name}_{arm}") for arm in ("yes", "no")]

with DAG("branch_answers", schedule=None, start_date=START):
    for name, answer in (
        ("none", None),
        ("empty", []),
        ("one", "one_a"),
        ("both", ["both_a", "both_b"]),
        ("unknown", "no_such_task"),
        ("number", 5),
        ("not_below", "one_a"),
        ("tuple", ("tuple_a",)),
        ("set", {"set_b"}),
    ):
        arms = [EmptyOperator(task_id=f"{name}_{arm}") for arm in "ab"]
        BranchPythonOperator(task_id=name, python_callable=lambda answer=answer: answer) >> arms
        arms >> EmptyOperator(task_id=f"{name}_join", trigger_rule="none_failed_min_one_success")

with DAG("branch_to_join_itself", schedule=None, start_date=START):

    @task.branch
    def choose():
        return "join"

    @task.branch(task_id="choose_deep")
    def choose_deep():
        return ["deep_1"]

    join = EmptyOperator(task_id="join", trigger_rule="none_failed")
    picked = choose()
    picked >> EmptyOperator(task_id="arm") >> join
    picked >> join
    deep = choose_deep()
    d1, d2 = EmptyOperator(task_id="deep_1"), EmptyOperator(task_id="deep_2")
    shared = EmptyOperator(task_id="shared")
    deep >> Label("left") >> d1 >> shared
    deep >> Label("right") >> d2 >> shared
    deep >> EmptyOperator(task_id="deep_3") >> EmptyOperator(task_id="deep_4", trigger_rule="all_done")

with DAG("branch_nested", schedule=None, start_date=START):

    @task.branch
    def outer():
        return "left.inner"

    @task_group
    def left():
        @task.branch
        def inner():
            return "left.x"

        inner() >> [EmptyOperator(task_id="x"), EmptyOperator(task_id="y")]

    @task_group
    def right():
        EmptyOperator(task_id="z") >> EmptyOperator(task_id="zz")

    arms = [left(), right()]
    outer() >> arms >> EmptyOperator(task_id="end", trigger_rule="none_failed_min_one_success")

with DAG("branch_in_mapped_group", schedule=None, start_date=START):

    @task_group
    def per(n):
        @task.branch
        def pick(n):
            return "per.even" if n % 2 == 0 else "per.odd"

        @task
        def even(n):
            return f"{n} even"

        @task
        def odd(n):
            return f"{n} odd"

        @task(trigger_rule="none_failed_min_one_success")
        def close(n):
            return f"{n} closed"

        pick(n) >> [even(n), odd(n)] >> close(n)

    @task
    def after():
        return "after"

    per.expand(n=[1, 2, 3]) >> after()

with DAG("branch_custom_operator", schedule=None, start_date=START):

    class ByConf(BaseBranchOperator):
        template_fields = ("wanted",)

        def __init__(self, *, wanted, **kwargs):
            super().__init__(**kwargs)
            self.wanted = wanted

        def choose_branch(self, context):
            return [f"to_{self.wanted}"]

    ByConf(task_id="by_conf", wanted="{{ dag_run.conf.get('to', 'b') }}") >> [
        EmptyOperator(task_id="to_a"),
        EmptyOperator(task_id="to_b"),
    ]

with DAG("branch_fails_then_retries", schedule=None, start_date=START):

    @task.branch(retries=1, retry_delay=pendulum.duration(seconds=1))
    def second_time(ti=None):
        if ti.try_number == 1:
            raise ValueError("first")
        return "yes"

    second_time() >> [EmptyOperator(task_id="yes"), EmptyOperator(task_id="no")]

with DAG("branch_mapped_operator", schedule=None, start_date=START):

    @task.branch
    def pick_many(n):
        return "even" if n % 2 == 0 else "odd"

    pick_many.expand(n=[1, 3]) >> [EmptyOperator(task_id="even"), EmptyOperator(task_id="odd")]
