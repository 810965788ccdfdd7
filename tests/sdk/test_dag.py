"""A DAG as its author writes it: arguments, ids, edges, groups."""

from __future__ import annotations

import datetime as dt

import pytest

from scheduler_app.sdk import DAG, BaseOperator, Label, TaskGroup, chain, chain_linear, cross_downstream
from scheduler_app.sdk import EmptyOperator as Empty
from scheduler_app.sdk.exceptions import (
    AirflowDagCycleException,
    AirflowException,
    AirflowTimetableInvalid,
    DuplicateTaskIdFound,
    FailFastDagInvalidTriggerRule,
    TaskNotFound,
)
from scheduler_app.sdk.serialize import serialize

from .memory_port import utc


def edges(dag: DAG) -> set[tuple[str, str]]:
    return {(task.task_id, after) for task in dag.tasks for after in task.downstream_task_ids}


@pytest.mark.parametrize(
    ("argument", "instead"),
    [
        ("schedule_interval", "schedule"),
        ("timetable", "schedule"),
        ("concurrency", "max_active_tasks"),
        ("fail_stop", "fail_fast"),
    ],
)
def test_a_removed_argument_is_named_with_what_replaced_it(argument: str, instead: str) -> None:
    with pytest.raises(TypeError, match=rf"'{argument}' \(removed in Airflow 3; use {instead}\)"):
        DAG("d", **{argument: "x"})


def test_a_mistyped_argument_of_a_dag_and_of_a_task_names_the_nearest_one() -> None:
    with pytest.raises(TypeError, match="Did you mean 'catchup'"):
        DAG("d", catchups=True)
    with DAG("d"), pytest.raises(TypeError, match=r"EmptyOperator \(task 'x'\).*'retris'.*Did you mean 'retries'"):
        Empty(task_id="x", retris=1)


@pytest.mark.parametrize("bad", ["a b", "a/b", "", "x" * 251])
def test_an_id_with_other_characters_is_refused(bad: str) -> None:
    with pytest.raises(AirflowException):
        DAG(bad)


def test_unicode_ids_with_dots_and_dashes_are_ids() -> None:
    with DAG("unicode-v1.0_ünï") as dag:
        Empty(task_id="任务.with-dots")
    assert dag.task_ids == ["任务.with-dots"]


@pytest.mark.parametrize(
    ("schedule", "document"),
    [
        (None, {"kind": "null"}),
        ("@once", {"kind": "once"}),
        ("5 4 * * 1", {"kind": "cron_trigger", "expression": "5 4 * * 1", "timezone": "UTC"}),
        (dt.timedelta(hours=7), {"kind": "delta_trigger", "delta": 25200.0}),
    ],
)
def test_a_schedule_becomes_a_timetable_document(schedule: object, document: dict[str, object]) -> None:
    assert DAG("d", schedule=schedule, start_date=utc(2024, 1, 1)).timetable.to_doc() == document


def test_a_cron_schedule_ticks_in_the_zone_of_the_start_date() -> None:
    import pendulum

    dag = DAG("d", schedule="30 2 * * *", start_date=pendulum.datetime(2024, 3, 9, tz="America/New_York"))
    assert dag.timetable.to_doc()["timezone"] == "America/New_York"


def test_a_wrong_cron_expression_is_named() -> None:
    with pytest.raises(AirflowTimetableInvalid, match=r"61 25 \* \* \*"):
        DAG("d", schedule="61 25 * * *")


def test_continuous_allows_one_active_run_only() -> None:
    with pytest.raises(ValueError, match="max_active_runs=1"):
        DAG("d", schedule="@continuous")
    assert DAG("d", schedule="@continuous", max_active_runs=1).timetable.to_doc() == {"kind": "continuous"}


def test_two_tasks_of_one_id_are_refused_by_name() -> None:
    with DAG("d"):
        Empty(task_id="same")
        with pytest.raises(DuplicateTaskIdFound, match="'same'"):
            Empty(task_id="same")


def test_a_circle_is_described_in_the_direction_of_its_edges() -> None:
    with DAG("d") as dag:
        a, b, c = (Empty(task_id=name) for name in "abc")
        a >> b >> c >> a
    with pytest.raises(AirflowDagCycleException, match="a >> b >> c >> a"):
        dag.validate()


def test_fail_fast_refuses_other_trigger_rules() -> None:
    with DAG("d", fail_fast=True), pytest.raises(FailFastDagInvalidTriggerRule, match=r"'x'.*all_success"):
        Empty(task_id="x", trigger_rule="all_done")


def test_an_unknown_trigger_rule_names_the_nearest_and_all_others() -> None:
    with DAG("d"), pytest.raises(ValueError, match=r"'al_done'\. Did you mean 'all_done'"):
        Empty(task_id="x", trigger_rule="al_done")


def test_an_unknown_task_names_the_nearest() -> None:
    with DAG("d") as dag:
        Empty(task_id="extract")
    with pytest.raises(TaskNotFound, match="Did you mean 'extract'"):
        dag.get_task("extrakt")


def test_default_args_fill_what_is_missing_from_outside_in() -> None:
    with DAG("d", default_args={"retries": 1, "owner": "dag", "pool": "p"}):
        with TaskGroup("g", default_args={"retries": 2}):
            inherits, own = Empty(task_id="a"), Empty(task_id="b", retries=3)
            with TaskGroup("sub", default_args={"retries": 4}):
                deep = Empty(task_id="c")
        outside = Empty(task_id="e")
    assert [task.retries for task in (inherits, own, deep, outside)] == [2, 3, 4, 1]
    assert {task.owner for task in (inherits, own, deep, outside)} == {"dag"}


def test_a_default_arg_that_only_some_operators_take_is_no_error_for_the_others() -> None:
    class Copy(BaseOperator):
        def __init__(self, *, target: str, **kwargs: object) -> None:
            super().__init__(retries=7, **kwargs)
            self.target = target

    with DAG("d", default_args={"target": "here", "retries": 1}):
        assert (Copy(task_id="c").target, Copy(task_id="c2").retries) == ("here", 7)
        assert Empty(task_id="e").retries == 1


def test_a_missing_required_argument_is_named_with_its_task() -> None:
    class Copy(BaseOperator):
        def __init__(self, *, target: str, **kwargs: object) -> None:
            super().__init__(**kwargs)

    with DAG("d"), pytest.raises(TypeError, match=r"Copy \(task 'c'\) misses the keyword argument\(s\) 'target'"):
        Copy(task_id="c")
    with (
        DAG("d"),
        pytest.raises(TypeError, match=r"misses .* 'target'\. It was given 'tarket'\. Did you mean 'target'"),
    ):
        Copy(task_id="c", tarket="x")


def test_shift_operators_draw_edges_through_lists_and_groups() -> None:
    with DAG("d") as dag:
        start, end = Empty(task_id="start"), Empty(task_id="end")
        with TaskGroup("g") as group:
            a, b = Empty(task_id="a"), Empty(task_id="b")
            a >> b
        start >> group >> end
        [start, end] << Empty(task_id="first")
    assert edges(dag) == {("start", "g.a"), ("g.a", "g.b"), ("g.b", "end"), ("first", "start"), ("first", "end")}


def test_a_group_without_prefix_keeps_the_ids_of_its_tasks() -> None:
    with DAG("d") as dag, TaskGroup("outer"), TaskGroup("core", prefix_group_id=False) as core:
        Empty(task_id="bare")
    assert (core.group_id, dag.task_ids) == ("outer.core", ["bare"])


def test_edges_of_a_group_skip_its_teardowns() -> None:
    with DAG("d") as dag:
        with TaskGroup("g") as group:
            up = Empty(task_id="up")
            work, down = Empty(task_id="work"), Empty(task_id="down").as_teardown(setups=up)
            up >> work >> down
        group >> Empty(task_id="after")
    assert dag.get_task("after").upstream_task_ids == {"g.work"}


def test_a_label_stands_on_its_edge_alone() -> None:
    with DAG("d") as dag:
        a, b, c = (Empty(task_id=name) for name in "abc")
        a >> Label("yes") >> b
        a >> [Label("no") >> c] if False else a >> Label("no") >> [c]
    assert dag.edge_info == {"a": {"b": {"label": "yes"}, "c": {"label": "no"}}}


def test_chain_connects_pairwise_and_refuses_unequal_lists() -> None:
    with DAG("d") as dag:
        a, b, c, d, e, f = (Empty(task_id=name) for name in "abcdef")
        chain(a, [b, c], [d, e], f)
        assert edges(dag) == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "e"), ("d", "f"), ("e", "f")}
        with pytest.raises(ValueError, match="2 and 1 items"):
            chain([a, b], [c])


def test_chain_linear_and_cross_downstream_connect_all_with_all() -> None:
    with DAG("d") as dag:
        a, b, c, d = (Empty(task_id=name) for name in "abcd")
        chain_linear([a, b], [c, d])
    with DAG("e") as other:
        cross_downstream([Empty(task_id="a"), Empty(task_id="b")], [Empty(task_id="c"), Empty(task_id="d")])
    assert edges(dag) == edges(other) == {("a", "c"), ("a", "d"), ("b", "c"), ("b", "d")}


def test_an_edge_between_two_dags_is_refused() -> None:
    with DAG("d"):
        a = Empty(task_id="a")
    with DAG("e"), pytest.raises(AirflowException, match="stays inside one DAG"):
        a >> Empty(task_id="b")


def test_tasks_made_inside_a_teardown_block_lie_between_setup_and_teardown() -> None:
    with DAG("d") as dag:
        up = Empty(task_id="up").as_setup()
        down = Empty(task_id="down").as_teardown(setups=up)
        with down:
            Empty(task_id="one") >> Empty(task_id="two")
    assert edges(dag) == {("up", "down"), ("up", "one"), ("one", "two"), ("two", "down")}


def test_a_callback_that_was_called_in_place_of_given_is_refused() -> None:
    with DAG("d"), pytest.raises(TypeError, match="give the function itself"):
        Empty(task_id="x", on_failure_callback="not a function")


def test_a_limit_that_the_file_does_not_say_is_left_to_the_setting() -> None:
    assert not {"max_active_tasks", "max_active_runs"} & serialize(DAG("d")).keys()
    document = serialize(DAG("d", max_active_tasks=16, max_active_runs=16))
    assert (document["max_active_tasks"], document["max_active_runs"]) == (16, 16)
    later = DAG("d")
    assert later.max_active_tasks == 16
    later.max_active_tasks = 5
    assert serialize(later)["max_active_tasks"] == 5


@pytest.mark.parametrize("name", ["max_active_tasks", "max_active_runs"])
def test_a_limit_below_one_is_refused_and_says_what_to_do(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} of DAG 'd' is 0: it is a number from 1 up. To stop a DAG, pause it."):
        DAG("d", **{name: 0})
