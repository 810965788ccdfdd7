"""Params: of the DAG, of tasks, from conf, with and without a default, typed rendering."""

from __future__ import annotations

import pendulum
from airflow.operators.bash import BashOperator
from airflow.operators.python import PythonOperator
from airflow.sdk import DAG, Param, ParamsDict, dag, task

START = pendulum.datetime(2024, 1, 1)

with DAG(
    "params_layers",
    schedule=None,
    start_date=START,
    params={"a": 1, "b": Param("dag", type="string"), "c": [1, 2]},
    default_args={"params": {"a": 5, "d": "default_args"}},
):

    def show(params, **_):
        return dict(sorted(params.items()))

    PythonOperator(task_id="plain", python_callable=show)
    PythonOperator(task_id="own", python_callable=show, params={"b": "task", "e": {"x": 1}})
    BashOperator(task_id="rendered", bash_command="echo {{ params.a }}-{{ params.b }}-{{ params.c[1] }}-{{ params.d }}")

    @task
    def injected(params=None, dag_run=None):
        return [params["a"], dag_run.conf, type(params).__name__]

    @task
    def missing(params=None):
        try:
            return params["zzz"]
        except KeyError:
            return "KeyError"

    injected()
    missing()

with DAG(
    "params_native",
    schedule=None,
    start_date=START,
    render_template_as_native_obj=True,
    params={"n": Param(3, type="integer"), "l": ["a", 1], "s": "007"},
):
    PythonOperator(
        task_id="native",
        python_callable=lambda *a: [[type(x).__name__, x] for x in a],
        op_args=[
            "{{ params.n }}",
            "{{ params.l }}",
            "{{ params.s }}",
            "{{ none }}",
            "{{ [1, 2] }}",
            "text {{ params.n }}",
            "{{ params.n + 1 }}",
        ],
    )

with DAG(
    "params_required",
    schedule=None,
    start_date=START,
    params={"needed": Param(type="string", minLength=2), "optional": Param(None, type=["null", "integer"])},
):
    PythonOperator(task_id="show", python_callable=lambda params: dict(params))

with DAG(
    "params_formats",
    schedule=None,
    start_date=START,
    params={
        "date": Param("2024-01-01", type="string", format="date"),
        "datetime": Param("2024-01-01T00:00:00+00:00", type="string", format="date-time"),
        "time": Param("10:11:12", type=["string", "null"], format="time"),
        "number": Param(1.5, type="number", exclusiveMaximum=2),
        "flag": Param(True, type="boolean"),
        "object": Param({"k": 1}, type="object", properties={"k": {"type": "integer"}}, required=["k"]),
        "pattern": Param("ab1", type="string", pattern="^[a-z]+[0-9]$"),
        "choice": Param(None, enum=[None, 1, "two"]),
        "const": Param("fixed", const="fixed"),
    },
):
    PythonOperator(task_id="show", python_callable=lambda params: dict(sorted(params.items())))


@dag(schedule=None, start_date=START)
def params_of_function(name: str = "world", times: int = 2, maybe=None):
    @task
    def greet(n, t, m=None):
        return [n, t, m]

    greet(name, times, maybe)


params_of_function()
