"""Small things of DAG files that Airflow takes, or shows, in its own way."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from scheduler_app.sdk import DAG, BaseOperator, BashOperator, PythonOperator, TaskGroup, task
from scheduler_app.sdk import EmptyOperator as Empty
from scheduler_app.sdk.sensors.external_task import ExternalTaskSensor

from .memory_port import MemoryPort, attempt, run_all


class Named(BaseOperator):
    """An operator whose arguments have the names that Python's own catch-alls mostly have."""

    template_fields = ("kwargs",)

    def __init__(self, *, kwargs: Any = None, **rest: Any) -> None:
        super().__init__(**rest)
        self.kwargs = kwargs

    def execute(self, context: Any) -> Any:
        return self.kwargs


def test_an_argument_may_be_called_kwargs() -> None:
    with DAG("d") as dag:
        Named(task_id="plain", kwargs=1)
        Named.partial(task_id="mapped").expand(kwargs=[{"a": 1}, {"a": 2}])
    port = run_all(dag)
    assert port.xcoms["mapped", 1, "return_value"] == {"a": 2}


@pytest.mark.parametrize("name", ["retries", "pool_slots", "priority_weight", "on_failure_callback", "inlets", "owner"])
def test_what_the_scheduler_needs_before_the_instances_cannot_be_mapped(name: str) -> None:
    with DAG("d"), pytest.raises(TypeError, match=f"'{name}' is the same for all instances"):
        BashOperator.partial(task_id="t", bash_command="true").expand(**{name: [1, 2]})


def test_results_in_a_list_that_is_mapped_over_need_no_length() -> None:
    with DAG("d") as dag:

        @task
        def one() -> int:
            return 41

        @task
        def add(a: int, b: int = 1) -> int:
            return a + b

        add.expand(a=[one(), 2])
        add.override(task_id="by_dicts").expand_kwargs([{"a": one()}, {"a": 2, "b": one()}])
    port = run_all(dag)
    assert [port.xcoms["add", index, "return_value"] for index in (0, 1)] == [42, 3]
    assert [port.xcoms["by_dicts", index, "return_value"] for index in (0, 1)] == [42, 43]


@pytest.mark.parametrize("broken", [{"a": 1}, [1], [{"a": 1}, "b"]])
def test_expand_kwargs_of_a_function_takes_dicts_only(broken: Any) -> None:
    with DAG("d"):

        @task
        def add(a: int) -> int:
            return a

        with pytest.raises(TypeError, match="dict"):
            add.expand_kwargs(broken)


def test_an_edge_through_an_empty_group_connects_what_is_before_and_after_it() -> None:
    with DAG("d") as dag:
        first, last = Empty(task_id="first"), Empty(task_id="last")
        with TaskGroup("nothing") as nothing:
            pass
        with TaskGroup("nothing_either") as nothing_either:
            pass
        first >> nothing >> nothing_either >> last
    assert dag.get_task("first").downstream_task_ids == {"last"}


def test_an_edge_to_none_is_a_mistake() -> None:
    with DAG("d"), pytest.raises(Exception, match="between tasks and task groups; got None"):
        Empty(task_id="a") >> None


def test_a_teardown_runs_by_the_rule_of_teardowns_whatever_it_was_given() -> None:
    with DAG("d"):
        assert Empty(task_id="x", trigger_rule="one_failed").as_teardown().trigger_rule == "all_done_setup_success"


def test_ids_that_a_sensor_names_twice_are_known_when_it_runs() -> None:
    with DAG("d") as dag:
        ExternalTaskSensor(task_id="wait", external_dag_id="other", external_task_ids=["a", "a"])
    outcome = attempt(dag, "wait", MemoryPort())
    assert outcome["state"] == "failed"
    assert "has an id twice" in outcome["error"]["message"]


class Shows(BaseOperator):
    template_fields = ("value",)

    def __init__(self, *, value: Any, **rest: Any) -> None:
        super().__init__(**rest)
        self.value = value

    def execute(self, context: Any) -> Any:
        return repr(self.value)


def shown(value: Any, **dag_args: Any) -> tuple[Any, Any]:
    """The field as people see it, and as the task got it."""
    with DAG("d", **dag_args) as dag:
        Shows(task_id="t", value=value)
    port = run_all(dag)
    return port.rendered["value"], port.xcoms["t", -1, "return_value"]


def test_texts_without_a_template_are_read_as_values_where_templates_are() -> None:
    assert shown("12", render_template_as_native_obj=True) == (12, "12")
    assert shown("1,2", render_template_as_native_obj=True) == ([1, 2], "(1, 2)")
    assert shown("", render_template_as_native_obj=True) == (None, "None")
    assert shown("12") == ("12", "'12'")


def test_a_line_break_at_the_end_of_a_text_goes_with_or_without_a_template() -> None:
    assert shown("echo 1\n")[1] == shown("echo {{ 1 }}\n")[1] == "'echo 1'"
    assert shown("a\n", jinja_environment_kwargs={"keep_trailing_newline": True})[1] == "'a\\n'"


def test_marks_of_templates_may_be_others() -> None:
    marks = {"variable_start_string": "<<", "variable_end_string": ">>"}
    assert shown("<< 1 + 1 >>", jinja_environment_kwargs=marks)[0] == "2"


def test_moments_and_durations_are_shown_as_a_template_prints_them() -> None:
    moment = dt.datetime(2024, 5, 6, 7, 8, tzinfo=dt.UTC)
    assert shown([moment, {"d": dt.timedelta(hours=1)}])[0] == ["2024-05-06 07:08:00+00:00", {"d": "1:00:00"}]


def test_results_of_a_mapped_task_are_shown_as_a_list() -> None:
    with DAG("d") as dag:

        @task
        def square(n: int) -> dict[str, int]:
            return {"n": n * n}

        PythonOperator(task_id="gather", python_callable=list, op_args=[square.expand(n=[1, 2])])
    assert run_all(dag).rendered["op_args"] == [[{"n": 1}, {"n": 4}]]


def test_the_command_of_a_function_for_bash_is_shown_once_it_is_known() -> None:
    with DAG("d") as dag:

        @task.bash
        def hello() -> str:
            return "echo {{ 1 + 1 }}"

        @task.bash
        def breaks() -> str:
            raise ValueError

        hello()
        breaks()
    port = MemoryPort()
    attempt(dag, "hello", port)
    assert port.rendered["bash_command"] == "echo 2"
    attempt(dag, "breaks", port)
    assert port.rendered["bash_command"] == "DYNAMIC (set during execution)"
