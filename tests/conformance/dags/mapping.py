"""Dynamic task mapping: what can be mapped over, what comes back, names of indexes, limits, and failures on the way."""

from __future__ import annotations

import pendulum
from airflow.exceptions import AirflowSkipException
from airflow.operators.bash import BashOperator
from airflow.operators.empty import EmptyOperator
from airflow.operators.python import PythonOperator
from airflow.sdk import DAG, task, task_group

START = pendulum.datetime(2024, 1, 1)


@task
def numbers():
    return [1, 2, 3]


@task
def letters():
    return ["a", "b"]


@task
def table():
    return {"x": 1, "y": [2, 3]}


@task
def gather(values):
    return sorted(values, key=str)


with DAG("mapping_shapes", schedule=None, start_date=START):

    @task
    def pair(left, right="-"):
        return f"{left}{right}"

    @task
    def show(item):
        return list(item) if isinstance(item, tuple) else item

    n, le, ta = numbers(), letters(), table()
    gather.override(task_id="product_gather")(pair.override(task_id="product").expand(left=n, right=le))
    pair.override(task_id="product_literal").expand(left=[10, 20], right=le)
    show.override(task_id="over_dict").expand(item=ta)
    show.override(task_id="over_literal_dict").expand(item={"k": "v", "l": None})
    show.override(task_id="zipped").expand(item=n.zip(le))
    show.override(task_id="zipped_filled").expand(item=n.zip(le, fillvalue="?"))
    show.override(task_id="concatenated").expand(item=n.concat(le))
    show.override(task_id="doubled").expand(item=n.map(lambda x: x * 2))
    show.override(task_id="zip_of_map").expand(item=n.map(lambda x: -x).zip(le))
    show.override(task_id="kept_none").expand(item=[None, 0, "", False])
    pair.override(task_id="kwargs_xcom").expand_kwargs(n.map(lambda x: {"left": x, "right": x + 1}))
    pair.override(task_id="kwargs_literal").partial(right="R").expand_kwargs([{"left": 1}, {"left": 2, "right": "own"}])

with DAG("mapping_skips", schedule=None, start_date=START):

    @task
    def odd_only(n):
        if n % 2 == 0:
            raise AirflowSkipException("even")
        return n

    @task
    def nothing(n):
        return None if n == 2 else n

    def drop_even(n):
        if n % 2 == 0:
            raise AirflowSkipException("even")
        return n

    @task
    def again(n):
        return n * 10

    n = numbers()
    odds = odd_only.expand(n=n)
    gather.override(task_id="gather_odds", trigger_rule="none_failed")(odds)
    again.override(task_id="map_over_odds", trigger_rule="none_failed").expand(n=odds)
    again.override(task_id="all_success_over_odds").expand(n=odds)
    gather.override(task_id="gather_nothing")(nothing.expand(n=n))
    again.override(task_id="skipped_by_map").expand(n=n.map(drop_even))
    gather.override(task_id="gather_map_skipped", trigger_rule="none_failed")(n)

with DAG("mapping_failures", schedule=None, start_date=START):

    @task
    def maybe(n):
        if n == 2:
            raise ValueError(n)
        return n

    def break_two(n):
        if n == 2:
            raise ValueError("in map")
        return n

    n = numbers()
    some = maybe.expand(n=n)
    gather.override(task_id="all_must_work")(some)
    gather.override(task_id="whatever", trigger_rule="all_done")(some)
    EmptyOperator(task_id="one_worked", trigger_rule="one_success") << some
    EmptyOperator(task_id="one_broke", trigger_rule="one_failed") << some
    maybe.override(task_id="over_broken").expand(n=some)
    maybe.override(task_id="map_function_breaks").expand(n=n.map(break_two))

with DAG("mapping_bad_values", schedule=None, start_date=START):

    @task
    def gives(kind):
        return {"none": None, "number": 5, "text": "abc", "set": {1}, "nested": [[1], [2]]}[kind]

    @task
    def use(v):
        return v

    for kind in ("none", "number", "text", "nested"):
        use.override(task_id=f"use_{kind}").expand(v=gives.override(task_id=f"gives_{kind}")(kind))

    @task
    def bad_kwargs():
        return [{"v": 1}, 2]

    @task
    def unknown_kwargs():
        return [{"v": 1}, {"w": 2}]

    use.override(task_id="use_bad_kwargs").expand_kwargs(bad_kwargs())
    use.override(task_id="use_unknown_kwargs").expand_kwargs(unknown_kwargs())

with DAG("mapping_names", schedule=None, start_date=START):

    @task(map_index_template="{{ label }}")
    def named(n):
        from airflow.sdk import get_current_context

        get_current_context()["label"] = f"number {n}"
        return n

    named.expand(n=[1, 2])
    BashOperator.partial(task_id="by_command", map_index_template="{{ task.bash_command }}").expand(
        bash_command=["echo one", "echo two"]
    )
    PythonOperator.partial(
        task_id="by_args", python_callable=lambda x: x, map_index_template="{{ task.op_kwargs['x'] }}/{{ ds }}"
    ).expand(op_kwargs=[{"x": "p"}, {"x": "q"}])
    PythonOperator.partial(
        task_id="fails_named", python_callable=lambda x: x.nothing, map_index_template="{{ task.op_args[0] }}"
    ).expand(op_args=[["u"], ["v"]])
    BashOperator.partial(task_id="broken_name", map_index_template="{{ 1 / 0 }}").expand(bash_command=["echo 1"])

with DAG("mapping_groups", schedule=None, start_date=START):

    @task
    def add(a, b):
        return a + b

    @task
    def total(values):
        return sum(values)

    @task_group
    def inner(b):
        return add(b, 100)

    @task_group
    def outer(a):
        first = add.override(task_id="first")(a, 1)
        return inner(first)

    result = outer.expand(a=numbers())
    total(result)
    add.partial(b=0).expand(a=result)

    @task_group
    def by_kwargs(x, y):
        return add.override(task_id="sum")(x, y)

    gather(by_kwargs.expand_kwargs([{"x": 1, "y": 2}, {"x": 3, "y": 4}]))

    @task_group
    def by_product(x, y):
        return add.override(task_id="sum")(x, y)

    gather.override(task_id="gather_product")(by_product.expand(x=[1, 2], y=[10, 20]))

with DAG("mapping_group_upstreams", schedule=None, start_date=START):

    @task
    def fails_for(n):
        if n == 2:
            raise ValueError(n)
        if n == 3:
            raise AirflowSkipException
        return n

    @task_group
    def steps(n):
        start = fails_for(n)
        for rule in (
            "all_success",
            "one_failed",
            "none_failed",
            "all_done",
            "all_skipped",
            "none_failed_min_one_success",
        ):
            EmptyOperator(task_id=rule, trigger_rule=rule) << start

    done = steps.expand(n=[1, 2, 3])
    done >> EmptyOperator(task_id="after_all_done", trigger_rule="all_done")
    done >> EmptyOperator(task_id="after_one_success", trigger_rule="one_success")

with DAG("mapping_empty_group", schedule=None, start_date=START):

    @task
    def empty():
        return []

    @task_group
    def never(n):
        @task
        def one(n):
            return n

        @task(trigger_rule="all_done")
        def two(n):
            return n

        one(n) >> two(n)

    group = never.expand(n=empty())
    group >> EmptyOperator(task_id="after")
    group >> EmptyOperator(task_id="after_all_done", trigger_rule="all_done")
    group >> EmptyOperator(task_id="after_none_failed", trigger_rule="none_failed")

with DAG("mapping_in_turn", schedule=None, start_date=START):

    @task
    def spread(n):
        return list(range(n))

    @task
    def flat(lists):
        return [x for one in lists for x in one]

    spread_out = spread.expand(n=numbers())
    flattened = flat(spread_out)
    gather(spread.override(task_id="second").expand(n=flattened))

    @task
    def by_keys(item):
        return {"n": item, "square": item * item}

    @task(multiple_outputs=True)
    def many(item):
        return {"n": item, "half": item / 2}

    keyed = by_keys.expand(item=[1, 2])
    doubled = many.expand(item=[4, 6])
    gather.override(task_id="halves")(doubled["half"])
    gather.override(task_id="pushed_dicts")(keyed)

with DAG("mapping_limits", schedule=None, start_date=START):

    @task
    def too_many():
        return list(range(1025))

    @task
    def just_enough():
        return list(range(24))

    @task(max_active_tis_per_dagrun=4, do_xcom_push=False)
    def each(n):
        pass

    each.override(task_id="over_limit").expand(n=too_many())
    each.override(task_id="in_limit").expand(n=just_enough())

with DAG("mapping_retries", schedule=None, start_date=START):

    @task(retries=2, retry_delay=pendulum.duration(seconds=1))
    def stubborn(n, ti=None):
        if n == 2 and ti.try_number < 3:
            raise ValueError("again")
        return [n, ti.try_number, ti.map_index]

    gather(stubborn.expand(n=[1, 2]))

with DAG("mapping_pulls", schedule=None, start_date=START):

    @task
    def source(n):
        return n * n

    @task
    def pull(ti=None):
        every = ti.xcom_pull(task_ids="source")
        return {
            "type_has_len": len(every),
            "all": sorted(every),
            "second": ti.xcom_pull(task_ids="source", map_indexes=1),
            "two": list(ti.xcom_pull(task_ids="source", map_indexes=[2, 0])),
            "absent": ti.xcom_pull(task_ids="source", map_indexes=9),
            "both": [list(x) if hasattr(x, "__iter__") else x for x in ti.xcom_pull(task_ids=["source", "plain"])],
            "default": ti.xcom_pull(task_ids="source", key="none", default="d"),
        }

    @task
    def plain():
        return "p"

    [source.expand(n=[1, 2, 3]), plain()] >> pull()

with DAG("mapping_partial_templates", schedule=None, start_date=START):
    BashOperator.partial(task_id="shell", env={"DAY": "{{ ds }}"}, append_env=True).expand(
        bash_command=["echo $DAY {{ ti.map_index }}", "echo {{ task.task_id }}"]
    )
    PythonOperator.partial(task_id="args", python_callable=lambda *a, **k: [list(a), k]).expand_kwargs(
        [{"op_args": ["{{ ds }}", 1]}, {"op_kwargs": {"k": "{{ ti.map_index }}"}}]
    )
