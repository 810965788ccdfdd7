"""Templates and the context: names, params, variables, connections, XComs, files."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from scheduler_app.sdk import DAG, BaseHook, BashOperator, Connection, Param, PythonOperator, Variable, XComArg, literal
from scheduler_app.sdk import EmptyOperator as Empty
from scheduler_app.sdk.context import Context, names_for
from scheduler_app.sdk.exceptions import AirflowNotFoundException, AirflowRuntimeError
from scheduler_app.sdk.runtime import set_port

from .memory_port import LOGICAL_DATE, MemoryPort, attempt, run_all

HTTP = {
    "conn_id": "conf_http",
    "conn_type": "http",
    "host": "example.invalid",
    "login": "someone",
    "password": "s3cret/x",
    "port": 8443,
    "schema": "https",
    "extra": '{"timeout": 7, "nested": {"a": 1}}',
}


def rendered(
    template: Any, port: MemoryPort | None = None, dag_args: dict[str, Any] | None = None, **changes: Any
) -> Any:
    """What a templated argument became; an AssertionError with the outcome when the task failed."""
    port = port or MemoryPort()
    with DAG("d", **(dag_args or {})) as dag:
        PythonOperator(
            task_id="t", python_callable=lambda value: None, op_args=[template], params=changes.pop("params", None)
        )
    outcome = attempt(dag, "t", port, **changes)
    assert outcome["state"] == "success", outcome
    return port.rendered["op_args"][0]


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ ds }}|{{ ds_nodash }}|{{ ts }}", "2024-03-15|20240315|2024-03-15T10:20:30.456000+00:00"),
        ("{{ ts_nodash }}|{{ ts_nodash_with_tz }}", "20240315T102030|20240315T102030.456000+0000"),
        (
            "{{ data_interval_start }}|{{ logical_date }}",
            "2024-03-15 10:20:30.456000+00:00|2024-03-15 10:20:30.456000+00:00",
        ),
        ("{{ run_id }}|{{ dag.dag_id }}|{{ ti.task_id }}", "conf_run|d|t"),
        ("{{ task_instance_key_str }}", "d__t__20240315"),
        ("{{ macros.ds_add(ds, 5) }}|{{ macros.ds_format(ds, '%Y-%m-%d', '%d/%m/%y') }}", "2024-03-20|15/03/24"),
        ("{{ macros.datetime(2020, 1, 2) }}|{{ macros.timedelta(days=2) }}", "2020-01-02 00:00:00|2 days, 0:00:00"),
        ("{{ logical_date.add(days=1) | ds }}|{{ logical_date | ts_nodash }}", "2024-03-16|20240315T102030"),
        ("{{ 0 <= macros.random() < 1 }}", "True"),
        ("no template", "no template"),
    ],
)
def test_names_of_the_context_render_as_texts(template: str, text: str) -> None:
    assert rendered(template) == text


def test_templates_are_found_at_any_depth_and_other_values_stay() -> None:
    assert rendered({"k": ["{{ ds }}", ("{{ run_id }}",)], "n": 5}) == {"k": ["2024-03-15", ["conf_run"]], "n": 5}
    assert rendered(literal("{{ ds }}")) == "{{ ds }}"


@pytest.mark.parametrize(
    "template", ["[{{ no_such_name }}]", "{{ ds ", "{{ var.value.absent }}", "{{ conn.absent.host }}"]
)
def test_what_cannot_be_rendered_fails_the_task(template: str) -> None:
    with DAG("d") as dag:
        BashOperator(task_id="t", bash_command=template)
    assert attempt(dag, "t")["state"] == "failed"


def test_a_run_without_logical_date_has_no_ds() -> None:
    with DAG("d") as dag:
        PythonOperator(
            task_id="t", python_callable=lambda **context: ["ds" in context, "data_interval_start" in context]
        )
        BashOperator(task_id="uses", bash_command="echo {{ ds }}")
    port = MemoryPort()
    attempt(dag, "t", port, logical_date=None)
    assert port.xcoms["t", -1, "return_value"] == [False, False]
    assert attempt(dag, "uses", port, logical_date=None)["state"] == "failed"


def test_params_come_from_the_dag_then_the_task_then_the_run() -> None:
    template = "{{ params.a }}{{ params.b }}{{ params.c }}{{ params.extra }}"
    dag_args = {"params": {"a": 1, "b": 1, "c": 1}}
    assert rendered(template, dag_args=dag_args, params={"b": 2, "c": 2}, run={"conf": {"c": 3, "extra": 4}}) == "1234"


def test_params_among_default_arguments_are_those_of_every_task() -> None:
    dag_args = {"params": {"a": 1, "b": 2}, "default_args": {"params": {"a": 5}}}
    assert rendered("{{ params.a }}{{ params.b }}", dag_args=dag_args) == "52"


def test_names_of_airflow_2_are_found_but_not_listed() -> None:
    with DAG("d") as dag:
        PythonOperator(task_id="listed", python_callable=lambda **context: sorted({"conf", "test_mode"} & set(context)))
        PythonOperator(task_id="named", python_callable=lambda test_mode, conf: [test_mode, conf is not None])
        BashOperator(task_id="template", bash_command="echo {{ test_mode }}")
    port = run_all(dag)
    assert port.xcoms["listed", -1, "return_value"] == []
    assert port.xcoms["named", -1, "return_value"] == [False, True]
    assert port.xcoms["template", -1, "return_value"] == "False"


def test_a_run_without_a_date_has_no_interval_of_the_run_before() -> None:
    with DAG("d") as dag:
        PythonOperator(task_id="t", python_callable=lambda **context: sorted(n for n in context if "prev_" in n))
    port = MemoryPort()
    no_date = {"logical_date": None, "data_interval_start": None, "data_interval_end": None}
    attempt(dag, "t", port, run=no_date)
    assert port.xcoms["t", -1, "return_value"] == ["prev_end_date_success", "prev_start_date_success"]


def test_a_name_is_made_when_it_is_asked_for_and_all_of_them_for_whoever_wants_the_whole() -> None:
    made: list[str] = []

    def later(name: str) -> Any:
        return lambda of: made.append(name) or f"{name} of {of}"

    def fresh() -> Context:
        made.clear()
        context = Context(a=1)
        context.promise({"a": later("a"), "b": later("b"), "c": later("c")}, "it")
        return context

    context = fresh()
    assert "b" in context
    assert "d" not in context
    assert made == []
    assert (context["b"], context.get("b"), context["a"], made) == ("b of it", "b of it", 1, ["b"])
    every = {"a": 1, "b": "b of it", "c": "c of it"}
    for whole in (
        lambda context: {**context},
        dict,
        lambda context: dict(**context),
        lambda context: context.copy(),
        copy.copy,
        lambda context: dict(context.items()),
        lambda context: {name: context[name] for name in context},
        lambda context: {} | context,
        lambda context: context | {},
    ):
        assert whole(fresh()) == every
    assert fresh() == every
    assert len(fresh()) == 3
    context = fresh()
    del context["b"]
    assert list(context) == ["a", "c"]


def test_a_function_is_given_what_it_names_and_nothing_else_is_made() -> None:
    made: list[str] = []
    context = Context(ti="the ti")
    context.promise({"ds": lambda of: made.append("ds") or "a day", "ts": lambda of: made.append("ts")}, None)
    context.older["conf"] = "old"
    assert names_for(context, lambda ti, ds, conf=None, other=1: None) == {"ti": "the ti", "ds": "a day", "conf": "old"}
    assert made == ["ds"]
    assert set(names_for(context, lambda conf, **rest: None)) == {"conf", "ti", "ds", "ts"}
    assert set(names_for(context, lambda **rest: None)) == {"ti", "ds", "ts"}


def test_conf_that_breaks_a_params_schema_fails_the_task() -> None:
    with DAG("d", params={"n": Param(5, type="integer", maximum=10)}) as dag:
        Empty(task_id="t", on_success_callback=print)
    outcome = attempt(dag, "t", run={"conf": {"n": 11}})
    assert outcome["error"]["type"] == "airflow.exceptions.ParamValidationError"
    assert "'n'" in outcome["error"]["message"] or "param n" in outcome["error"]["message"]


def test_variables_and_connections_render_with_defaults() -> None:
    port = MemoryPort(plain="p", doc='{"limits": {"max": 5}}')
    port.connections["conf_http"] = HTTP
    template = "{{ var.value.plain }}{{ var.json.doc.limits.max }}{{ var.value.get('x', 'fb') }}"
    template += "{{ var.json.get('x', {'d': 1}).d }}"
    assert rendered(template, port) == "p5fb1"
    assert rendered("{{ conn.conf_http.host }}:{{ conn.conf_http.extra_dejson.nested.a }}", port) == "example.invalid:1"
    assert port.masked == ["s3cret/x", "s3cret/x"]


def test_native_rendering_gives_values() -> None:
    assert rendered("{{ [1, 2] }}", dag_args={"render_template_as_native_obj": True}) == [1, 2]
    assert rendered("{{ [1, 2] }}") == "[1, 2]"


def test_macros_and_filters_of_the_author_are_known() -> None:
    dag_args = {"user_defined_macros": {"twice": lambda n: n * 2}, "user_defined_filters": {"loud": str.upper}}
    assert rendered("{{ twice(4) }}{{ 'a' | loud }}", dag_args=dag_args) == "8A"


def test_dunder_attributes_are_out_of_reach_of_templates() -> None:
    with DAG("d") as dag:
        BashOperator(task_id="t", bash_command="echo {{ ds.__class__.__mro__ }}")
    assert attempt(dag, "t")["state"] == "failed"


def test_a_template_file_is_read_from_the_search_path_and_may_include(tmp_path: Path) -> None:
    (tmp_path / "script.sh").write_text('echo "from file {{ ds }}"\n{% include "part.sh" %}')
    (tmp_path / "part.sh").write_text("echo {{ run_id }}")
    port = MemoryPort()
    with DAG("d", template_searchpath=[str(tmp_path)]) as dag:
        BashOperator(task_id="t", bash_command="script.sh")
        BashOperator(task_id="absent", bash_command="absent.sh")
        BashOperator(task_id="plain", bash_command="echo script.sh ")
    assert attempt(dag, "t", port)["state"] == "success"
    assert port.rendered["bash_command"] == 'echo "from file 2024-03-15"\necho conf_run'
    assert attempt(dag, "absent", port)["state"] == "failed"
    attempt(dag, "plain", port)
    assert port.xcoms["plain", -1, "return_value"] == "script.sh"


def test_results_render_inside_strings_and_as_arguments() -> None:
    port = MemoryPort()
    port.xcoms["src", -1, "n"] = 5
    with DAG("d") as dag:
        src = PythonOperator(task_id="src", python_callable=dict, multiple_outputs=True)
        BashOperator(task_id="text", bash_command=f"echo n={src.output['n']}")
        BashOperator(task_id="env", bash_command="echo $V", env={"V": XComArg(src, key="n")})
        PythonOperator(task_id="args", python_callable=lambda n: n, op_kwargs={"n": src.output["n"]})
    attempt(dag, "text", port)
    attempt(dag, "args", port)
    assert (port.xcoms["text", -1, "return_value"], port.xcoms["args", -1, "return_value"]) == ("n=5", 5)
    assert dag.get_task("env").upstream_task_ids == {"src"}


def test_a_value_from_an_xcom_is_no_template() -> None:
    port = MemoryPort()
    port.xcoms["src", -1, "return_value"] = ["{{ ds }}"]
    with DAG("d") as dag:
        src = PythonOperator(task_id="src", python_callable=list)
        PythonOperator(task_id="plain", python_callable=lambda x: x, op_args=[src.output])
        BashOperator.partial(task_id="mapped").expand(bash_command=src.output.map(lambda text: f"echo '{text}'"))
    attempt(dag, "plain", port)
    attempt(dag, "mapped", port, 0)
    assert port.xcoms["plain", -1, "return_value"] == ["{{ ds }}"]
    assert port.xcoms["mapped", 0, "return_value"] == "{{ ds }}"


def test_xcom_pull_gives_one_value_a_list_for_several_tasks_and_defaults() -> None:
    port = MemoryPort()
    port.xcoms |= {("a", -1, "return_value"): 1, ("m", 0, "return_value"): "x", ("m", 1, "return_value"): "y"}

    def pull(ti: Any) -> Any:
        return [
            ti.xcom_pull("a"),
            ti.xcom_pull(["a", "none"]),
            ti.xcom_pull("m"),
            ti.xcom_pull("m", map_indexes=1),
            ti.xcom_pull("none"),
            ti.xcom_pull("none", default=7),
            ti.xcom_pull("a", key="other"),
        ]

    with DAG("d") as dag:
        PythonOperator(task_id="t", python_callable=pull)
    attempt(dag, "t", port)
    assert port.xcoms["t", -1, "return_value"] == [1, [1, None], ["x", "y"], "y", None, 7, None]


def test_previous_dates_are_asked_for_once_and_only_when_used() -> None:
    port = MemoryPort()
    port.previous = {"data_interval_start": LOGICAL_DATE, "data_interval_end": LOGICAL_DATE}
    rendered("{{ ds }}", port)
    assert [name for name, _ in port.questions] == []
    text = rendered("{{ prev_data_interval_start_success | ds }} {{ prev_data_interval_end_success.year }}", port)
    assert (text, [name for name, _ in port.questions]) == ("2024-03-15 2024", ["get_previous_run"])


def test_variables_are_written_read_and_missed() -> None:
    port = MemoryPort()
    set_port(port)
    try:
        Variable.set("k", {"x": [1]}, serialize_json=True)
        assert Variable.get("k", deserialize_json=True) == {"x": [1]}
        assert (Variable.get("no", default_var=None), Variable.get("no", default="d")) == (None, "d")
        with pytest.raises(AirflowRuntimeError, match="'no'"):
            Variable.get("no")
        Variable.delete("k")
        assert port.variables == {}
    finally:
        set_port(None)


def test_our_side_cannot_be_asked_while_a_file_is_read() -> None:
    with pytest.raises(RuntimeError, match="This process is neither"):
        Variable.get("k")


def test_a_connection_is_found_or_missed_by_name() -> None:
    port = MemoryPort()
    port.connections["conf_http"] = HTTP
    set_port(port)
    try:
        found = BaseHook.get_connection("conf_http")
        assert (found.port, found.extra_dejson) == (8443, {"timeout": 7, "nested": {"a": 1}})
        assert found.get_uri() == (
            "http://someone:s3cret%2Fx@example.invalid:8443/https?"
            "__extra__=%7B%22timeout%22%3A+7%2C+%22nested%22%3A+%7B%22a%22%3A+1%7D%7D"
        )
        with pytest.raises(AirflowNotFoundException, match="absent"):
            BaseHook.get_connection("absent")
    finally:
        set_port(None)


def test_a_connection_is_read_from_its_uri_and_written_back() -> None:
    made = Connection(uri="postgres://u:p%40ss@h.example:5433/db?sslmode=require")
    parts = [made.conn_type, made.host, made.port, made.login, made.password, made.schema, made.extra_dejson]
    assert parts == ["postgres", "h.example", 5433, "u", "p@ss", "db", {"sslmode": "require"}]
    assert made.get_uri() == "postgres://u:p%40ss@h.example:5433/db?sslmode=require"


def test_variables_and_extras_with_sensitive_names_are_hidden_in_the_log() -> None:
    port = MemoryPort(
        db_password="hunter2", plain="p", settings='{"api_key": "k1", "host": "h", "deep": {"token": ["t1"]}}'
    )
    port.connections["c"] = {"conn_id": "c", "conn_type": "http", "extra": '{"secret_key": "x1", "region": "eu"}'}
    set_port(port)
    try:
        Variable.get("db_password")
        Variable.get("plain")
        Variable.get("settings", deserialize_json=True)
        BaseHook.get_connection("c")
    finally:
        set_port(None)
    assert port.masked == ["hunter2", "k1", "t1", "x1"]
