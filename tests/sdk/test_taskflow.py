"""Functions as tasks: arguments, results, mapping, groups."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_app.sdk import DAG, setup, task, task_group, teardown
from scheduler_app.sdk.exceptions import AirflowSkipException

from .memory_port import MemoryPort, attempt, run_all


def pushed(port: MemoryPort, task_id: str, key: str = "return_value") -> Any:
    rows = port.get_xcoms(task_id=task_id, key=key)
    return rows[0][1] if rows and rows[0][0] < 0 else [value for _, value in rows]


def test_a_result_as_argument_draws_the_edge_and_arrives_as_value() -> None:
    with DAG("d") as dag:

        @task
        def one() -> int:
            return 1

        @task
        def add(x: int, y: int = 10) -> int:
            return x + y

        add(add(one()), y=100)
    assert dag.get_task("add__1").upstream_task_ids == {"add"}
    assert pushed(run_all(dag), "add__1") == 111


def test_a_dict_annotation_pushes_each_output() -> None:
    with DAG("d") as dag:

        @task
        def pair() -> dict[str, int]:
            return {"left": 3, "right": 4}

        @task
        def double(x: int) -> int:
            return x * 2

        double(pair()["left"])
    port = run_all(dag)
    assert (pushed(port, "pair", "right"), pushed(port, "double")) == (4, 6)


def test_multiple_outputs_of_something_else_fail_the_task() -> None:
    with DAG("d") as dag:

        @task(multiple_outputs=True)
        def wrong() -> int:
            return 3

        wrong()
    outcome = attempt(dag, "wrong")
    assert (outcome["state"], outcome["error"]["type"]) == ("failed", "TypeError")


def test_context_names_are_filled_and_may_only_default_to_none() -> None:
    with DAG("d") as dag:

        @task
        def who(ds: Any, ti: Any = None, **context: Any) -> Any:
            return [ds, ti.task_id, context["run_id"]]

        who()  # type: ignore[call-arg]
        with pytest.raises(ValueError, match=r"'ds' of .*only be None, not 'mine'"):

            @task
            def clash(ds: str = "mine") -> str:
                return ds

    assert pushed(run_all(dag), "who") == ["2024-03-15", "who", "conf_run"]


def test_a_call_that_cannot_work_fails_while_the_file_is_read() -> None:
    with DAG("d"):

        @task
        def needs(x: int) -> int:
            return x

        with pytest.raises(TypeError, match=r"needs\(\): missing a required argument: 'x'"):
            needs()  # type: ignore[call-arg]


def test_override_changes_one_call_only() -> None:
    with DAG("d") as dag:

        @task(retries=1)
        def work() -> None: ...

        work.override(task_id="renamed", retries=5)()
        work()
    assert (dag.get_task("renamed").retries, dag.get_task("work").retries) == (5, 1)


def test_expand_makes_the_product_with_the_last_argument_fastest() -> None:
    with DAG("d") as dag:

        @task
        def pair(a: int, b: str, c: str = "!") -> str:
            return f"{a}{b}{c}"

        pair.partial(c="?").expand(a=[1, 2], b=["x", "y"])
    assert pushed(run_all(dag), "pair") == ["1x?", "1y?", "2x?", "2y?"]


def test_reducers_see_only_what_was_pushed() -> None:
    with DAG("d") as dag:

        @task
        def odd(x: int) -> int | None:
            if x == 3:
                raise AirflowSkipException
            return x if x % 2 else None

        @task
        def collect(values: Any) -> list[int]:
            return list(values)

        collect(odd.expand(x=[1, 2, 3, 5]))
    assert pushed(run_all(dag), "collect") == [1, 5]


def test_expand_kwargs_zip_map_and_concat_resolve_in_order() -> None:
    with DAG("d") as dag:

        @task
        def letters() -> list[str]:
            return ["a", "b"]

        @task
        def numbers() -> list[int]:
            return [1, 2, 3]

        @task
        def show(x: Any) -> str:
            return str(x)

        a, n = letters(), numbers()
        show.expand(x=a.zip(n, fillvalue="-"))
        show.expand(x=n.map(lambda value: value * 10))
        show.expand(x=a.concat(n))
        show.expand_kwargs(n.map(lambda value: {"x": value + 0.5}))
    port = run_all(dag)
    assert pushed(port, "show") == ["('a', 1)", "('b', 2)", "('-', 3)"]
    assert pushed(port, "show__1") == ["10", "20", "30"]
    assert pushed(port, "show__2") == ["a", "b", "1", "2", "3"]
    assert pushed(port, "show__3") == ["1.5", "2.5", "3.5"]


def test_a_map_function_that_breaks_fails_its_own_instance_only() -> None:
    def halve(n: int) -> int:
        if n % 2:
            raise ValueError(n)
        return n // 2

    with DAG("d") as dag:

        @task
        def numbers() -> list[int]:
            return [2, 3, 4]

        @task
        def use(n: int, pair: Any) -> Any:
            return [n, pair]

        halves = numbers().map(halve)
        use.partial(pair=None).expand(n=halves)
        use.override(task_id="zipped").partial(n=0).expand(pair=halves.zip(halves.concat(halves)))
    port = run_all(dag)
    assert [port.outcomes["use", index]["state"] for index in range(3)] == ["success", "failed", "success"]
    assert port.xcoms["use", 2, "return_value"] == [2, None]
    assert port.xcoms["zipped", 0, "return_value"] == [0, (1, 1)]
    assert port.outcomes["zipped", 1]["state"] == "failed"


def test_a_map_function_that_skips_skips_its_instance() -> None:
    def only_even(value: int) -> int:
        if value % 2:
            raise AirflowSkipException("odd")
        return value

    with DAG("d") as dag:

        @task
        def numbers() -> list[int]:
            return [1, 2]

        @task
        def show(x: int) -> int:
            return x

        show.expand(x=numbers().map(only_even))
    port = run_all(dag)
    assert [port.outcomes["show", index]["state"] for index in (0, 1)] == ["skipped", "success"]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "XComForMappingNotPushed"),
        (7, "UnmappableXComTypePushed"),
        ("abc", "UnmappableXComTypePushed"),
        ([0] * 1025, "UnmappableXComLengthPushed"),
    ],
)
def test_a_result_that_cannot_be_mapped_over_fails_the_upstream_without_retries(value: Any, kind: str) -> None:
    with DAG("d") as dag:

        @task
        def source() -> Any:
            return value

        @task
        def show(x: Any) -> None: ...

        show.expand(x=source())
    outcome = attempt(dag, "source")
    assert (outcome["state"], outcome["retry"], outcome["error"]["type"].rpartition(".")[2]) == ("failed", False, kind)


def test_what_feeds_mapping_tells_its_length() -> None:
    with DAG("d") as dag:

        @task
        def source() -> list[int]:
            return [1, 2, 3]

        @task
        def show(x: Any) -> None: ...

        show.expand(x=source())
    port = MemoryPort()
    assert attempt(dag, "source", port)["map_length"] == port.lengths["source"] == 3


def test_a_mapped_group_reads_its_own_index_inside_and_everything_outside() -> None:
    with DAG("d") as dag:

        @task
        def load(n: str) -> str:
            return n.upper()

        @task
        def save(x: str, mark: str) -> str:
            return x + mark

        @task
        def summary(values: Any) -> list[str]:
            return list(values)

        @task_group
        def etl(name: str, mark: str) -> Any:
            return save(load(name), mark)

        summary(etl.partial(mark="!").expand(name=["a", "b"]))
    assert pushed(run_all(dag), "summary") == ["A!", "B!"]


def test_mapping_inside_a_mapped_group_is_refused() -> None:
    with DAG("d"):

        @task
        def show(x: int) -> int:
            return x

        @task_group
        def outer(n: int) -> None:
            show.expand(x=[1, 2])

        with pytest.raises(NotImplementedError, match="mapped group"):
            outer.expand(n=[1])


def test_groups_made_by_one_function_get_suffixes_and_its_doc_as_tooltip() -> None:
    with DAG("d") as dag:

        @task
        def one() -> int:
            return 1

        @task_group
        def pack() -> None:
            """Doc of the group."""
            one()

        pack()
        pack()
    assert dag.task_ids == ["pack.one", "pack__1.one"]
    assert dag.task_group_dict["pack"].tooltip == "Doc of the group."


def test_setup_and_teardown_functions_mark_their_tasks() -> None:
    with DAG("d") as dag:

        @setup
        def up() -> str:
            return "res"

        @teardown(on_failure_fail_dagrun=True)
        def down(resource: str) -> None: ...

        down(up())
    assert (dag.get_task("up").is_setup, dag.get_task("down").is_teardown) == (True, True)
    assert dag.get_task("down").on_failure_fail_dagrun is True
    assert str(dag.get_task("down").trigger_rule) == "all_done_setup_success"


def test_run_if_and_skip_if_skip_before_the_function_is_called() -> None:
    calls: list[str] = []
    with DAG("d") as dag:

        @task.run_if(lambda context: context["ds"] == "2024-03-15")
        @task
        def wanted() -> None:
            calls.append("wanted")

        @task.skip_if(lambda context: True, skip_message="not today")
        @task
        def unwanted() -> None:
            calls.append("unwanted")

        wanted()
        unwanted()
    assert (attempt(dag, "wanted")["state"], attempt(dag, "unwanted")["state"], calls) == (
        "success",
        "skipped",
        ["wanted"],
    )


def test_a_bash_task_runs_what_the_function_returns() -> None:
    with DAG("d") as dag:

        @task.bash
        def shell(word: str) -> str:
            return f"echo {word} {{{{ ds }}}}"

        shell("hi")
    port = MemoryPort()
    attempt(dag, "shell", port)
    assert pushed(port, "shell") == "hi 2024-03-15"


def test_an_unknown_variant_names_the_nearest() -> None:
    with pytest.raises(AttributeError, match="Did you mean 'branch'"):
        task.brunch  # noqa: B018


def test_the_result_of_a_task_cannot_be_looped_over_in_the_file() -> None:
    with DAG("d"):

        @task
        def numbers() -> list[int]:
            return [1]

        with pytest.raises(TypeError, match=r"use \.expand\(\)"):
            list(numbers())


def test_an_async_function_runs_to_its_end() -> None:
    with DAG("d") as dag:

        @task
        async def later() -> int:
            return 5

        later()
    assert pushed(run_all(dag), "later") == 5


def test_results_of_a_mapped_task_may_be_passed_on_inside_other_values() -> None:
    with DAG("d") as dag:

        @task
        def square(x: int) -> int:
            return x * x

        @task
        def wrap(values: Any) -> Any:
            return {"all": values, "deep": [(values, 1)]}

        wrap(square.expand(x=[1, 2]))
    assert pushed(run_all(dag), "wrap") == {"all": [1, 4], "deep": [([1, 4], 1)]}
