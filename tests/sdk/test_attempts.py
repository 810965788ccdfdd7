"""How an attempt ends: outcomes, skips, time-outs, deferrals, callbacks."""

from __future__ import annotations

import datetime as dt
import os
import signal
import sys
import time
from typing import Any

import pendulum
import pytest

from scheduler_app import wire
from scheduler_app.sdk import (
    DAG,
    Asset,
    AssetAlias,
    BaseOperator,
    BashOperator,
    BranchPythonOperator,
    Metadata,
    PythonOperator,
    ShortCircuitOperator,
    TaskGroup,
    get_current_context,
    task,
)
from scheduler_app.sdk import EmptyOperator as Empty
from scheduler_app.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSkipException,
    AirflowTaskTimeout,
)
from scheduler_app.sdk.retry_policy import ExceptionRetryPolicy, RetryAction, RetryRule
from scheduler_app.sdk.sensors.date_time import DateTimeSensorAsync
from scheduler_app.sdk.serialize import serialize
from scheduler_app.sdk.triggers.base import StartTriggerArgs
from scheduler_app.sdk.triggers.temporal import DateTimeTrigger
from scheduler_app.usercode.execute import run_callback

from .memory_port import MemoryPort, Refused, attempt, start, utc


def one(callable_: Any, **kwargs: Any) -> DAG:
    with DAG("d") as dag:
        PythonOperator(task_id="t", python_callable=callable_, **kwargs)
    return dag


def raises(error: BaseException) -> Any:
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "state", "retry"),
    [
        (ValueError("v"), "failed", True),
        (AirflowException("a"), "failed", True),
        (AirflowFailException("f"), "failed", False),
        (AirflowSkipException("s"), "skipped", None),
        (SystemExit(0), "failed", True),
        (KeyboardInterrupt(), "failed", True),
        (AirflowTaskTimeout("t"), "failed", True),
    ],
)
def test_an_exception_decides_how_the_attempt_ends(error: BaseException, state: str, retry: bool | None) -> None:
    outcome = attempt(one(raises(error)), "t")
    assert (outcome["op"], outcome["state"], outcome.get("retry")) == ("outcome", state, retry)


def test_a_failure_tells_type_message_and_the_frames_of_the_author() -> None:
    error = attempt(one(raises(ValueError("broken"))), "t")["error"]
    assert (error["type"], error["message"]) == ("ValueError", "broken")
    assert "test_attempts.py" in error["traceback"]


def test_a_reschedule_says_when() -> None:
    outcome = attempt(one(raises(AirflowRescheduleException(utc(2024, 5, 1)))), "t")
    assert (outcome["state"], outcome["reschedule_at"]) == ("up_for_reschedule", "2024-05-01T00:00:00+00:00")


def test_a_result_that_cannot_cross_fails_with_its_key_and_type() -> None:
    outcome = attempt(one(lambda: {"x": object()}), "t")
    assert outcome["state"] == "failed"
    assert "return_value.x" in outcome["error"]["message"]


@pytest.mark.parametrize(
    ("command", "arguments", "state"),
    [
        ("exit 0", {}, "success"),
        ("exit 1", {}, "failed"),
        ("exit 99", {}, "skipped"),
        ("exit 7", {"skip_on_exit_code": [7, 8]}, "skipped"),
        ("exit 99", {"skip_on_exit_code": None}, "failed"),
        ("kill -9 $$", {}, "failed"),
        ("pwd", {"cwd": "/no/such/folder"}, "failed"),
    ],
)
def test_the_exit_code_decides_how_a_command_ends(command: str, arguments: dict[str, Any], state: str) -> None:
    with DAG("d") as dag:
        BashOperator(task_id="t", bash_command=command, **arguments)
    assert attempt(dag, "t")["state"] == state


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo no; exit 7", "The command ended with exit code 7: the task fails. Its last line was: 'no'"),
        ("kill -9 $$", "The command was killed by signal 9 (SIGKILL): the task fails. It wrote nothing."),
        (
            "exit 137",
            (
                "The command ended with exit code 137 (bash says so when signal 9, SIGKILL, killed a part of it):"
                " the task fails. It wrote nothing."
            ),
        ),
        ("exit 255", "The command ended with exit code 255: the task fails. It wrote nothing."),
    ],
)
def test_how_a_command_ended_is_said(command: str, message: str) -> None:
    with DAG("d") as dag:
        BashOperator(task_id="t", bash_command=command)
    assert attempt(dag, "t")["error"]["message"] == message


def test_a_command_gives_its_last_line_and_sees_its_own_environment_only() -> None:
    port = MemoryPort()
    with DAG("d") as dag:
        BashOperator(
            task_id="t", bash_command='echo first; echo "$X|${HOME:-unset}|$AIRFLOW_CTX_TASK_ID"', env={"X": "{{ ds }}"}
        )
    attempt(dag, "t", port)
    assert port.xcoms["t", -1, "return_value"] == "2024-03-15|unset|t"


def branching(answer: Any) -> DAG:
    with DAG("d") as dag:
        pick = BranchPythonOperator(task_id="pick", python_callable=lambda: answer)
        for arm in "abc":
            pick >> Empty(task_id=arm) >> Empty(task_id=f"{arm}_tail")
        dag.get_task("a_tail") >> dag.get_task("b")
    return dag


def test_a_branch_skips_the_direct_children_that_do_not_come_after_the_chosen() -> None:
    assert attempt(branching("a"), "pick")["skip"] == ["c"]
    assert sorted(attempt(branching(["c"]), "pick")["skip"]) == ["a", "b"]
    assert sorted(attempt(branching(None), "pick")["skip"]) == ["a", "b", "c"]


def test_a_branch_to_an_unknown_task_fails_by_name() -> None:
    outcome = attempt(branching("nowhere"), "pick")
    assert outcome["state"] == "failed"
    assert "'nowhere'" in outcome["error"]["message"]


def test_a_branch_to_a_group_follows_its_roots() -> None:
    with DAG("d") as dag:
        pick = BranchPythonOperator(task_id="pick", python_callable=lambda: "north")
        for name in ("north", "south"):
            with TaskGroup(name) as group:
                Empty(task_id="first") >> Empty(task_id="second")
            pick >> group
    assert attempt(dag, "pick")["skip"] == ["south.first"]


def short(value: Any, **kwargs: Any) -> DAG:
    with DAG("d") as dag:
        gate = ShortCircuitOperator(task_id="gate", python_callable=lambda: value, **kwargs)
        gate >> Empty(task_id="a") >> Empty(task_id="b") >> Empty(task_id="down").as_teardown()
    return dag


def test_a_false_short_circuit_skips_everything_below_but_teardowns() -> None:
    assert sorted(attempt(short(False), "gate")["skip"]) == ["a", "b"]
    assert attempt(short([], ignore_downstream_trigger_rules=False), "gate")["skip"] == ["a"]
    assert "skip" not in attempt(short("go"), "gate")


def test_a_skip_in_a_mapped_group_names_its_own_index() -> None:
    from scheduler_app.sdk import task_group

    with DAG("d") as dag:

        @task.short_circuit
        def gate(n: int) -> bool:
            return False

        @task_group
        def pack(n: int) -> None:
            gate(n) >> Empty(task_id="inside")

        pack.expand(n=[1, 2])
    assert attempt(dag, "pack.gate", map_index=1)["skip"] == [["pack.inside", 1]]


def test_a_mapped_gate_stops_nothing_outside_of_its_group() -> None:
    with DAG("d") as dag:

        @task.short_circuit
        def gate(n: int) -> bool:
            return n != 2

        gate.expand(n=[1, 2]) >> Empty(task_id="after")
    assert [attempt(dag, "gate", map_index=index).get("skip") for index in (0, 1)] == [None, None]


def test_a_name_of_an_index_that_cannot_be_rendered_fails_the_instance_and_pushes_nothing() -> None:
    with DAG("d") as dag:
        PythonOperator.partial(
            task_id="t", python_callable=lambda n: n, map_index_template="{{ 1 // task.op_args[0] }}"
        ).expand(op_args=[[0], [1]])
    port = MemoryPort()
    assert attempt(dag, "t", port, map_index=0)["error"]["type"] == "ZeroDivisionError"
    assert port.xcoms == {}
    assert attempt(dag, "t", port, map_index=1)["rendered_map_index"] == "1"


def test_a_task_may_begin_in_a_trigger() -> None:
    class Begins(BaseOperator):
        start_from_trigger = True
        start_trigger_args = StartTriggerArgs(
            "scheduler_app.sdk.triggers.temporal.TimeDeltaTrigger", "go_on", {"delta": dt.timedelta(seconds=5)}
        )

        def go_on(self, context: Any, event: Any = None) -> Any:
            return event

    with DAG("d") as dag:
        Begins(task_id="t")
    outcome = attempt(dag, "t")
    assert (outcome["state"], outcome["defer"]["next_method"]) == ("deferred", "go_on")


def test_a_task_that_begins_in_a_trigger_says_so_in_the_document() -> None:
    moment = dt.datetime(2024, 3, 15, 12, tzinfo=dt.UTC)
    with DAG("d") as dag:
        DateTimeSensorAsync(task_id="t", target_time=moment, start_from_trigger=True, timeout=60)
        DateTimeSensorAsync(task_id="plain", target_time="{{ ds }}")
    tasks = {task["task_id"]: task for task in serialize(dag)["tasks"]}
    assert tasks["t"]["start_trigger"] == {
        "classpath": "airflow.providers.standard.triggers.temporal.DateTimeTrigger",
        "kwargs": wire.encode({"moment": pendulum.instance(moment), "end_from_trigger": False}),
        "next_method": "execute_complete",
        "next_kwargs": {},
        "timeout": 60.0,
    }
    assert "start_trigger" not in tasks["plain"]


def test_execution_timeout_interrupts_and_kills_and_may_be_retried() -> None:
    killed: list[bool] = []

    class Slow(BaseOperator):
        def execute(self, context: Any) -> None:
            time.sleep(60)

        def on_kill(self) -> None:
            killed.append(True)

    with DAG("d") as dag:
        Slow(task_id="t", execution_timeout=dt.timedelta(seconds=0.05))
    outcome = attempt(dag, "t")
    assert (outcome["state"], outcome["retry"], killed) == ("failed", True, [True])
    assert outcome["error"]["type"] == "airflow.exceptions.AirflowTaskTimeout"


def test_a_task_may_catch_its_timeout() -> None:
    def catches() -> str:
        try:
            time.sleep(60)
        except AirflowTaskTimeout:
            return "caught"
        return "not"

    port = MemoryPort()
    attempt(one(catches, execution_timeout=dt.timedelta(seconds=0.05)), "t", port)
    assert port.xcoms["t", -1, "return_value"] == "caught"


def test_a_signal_to_end_calls_on_kill_and_fails_the_attempt() -> None:
    killed: list[bool] = []

    class Waits(BaseOperator):
        def execute(self, context: Any) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)

        def on_kill(self) -> None:
            killed.append(True)

    with DAG("d") as dag:
        Waits(task_id="t")
    outcome = attempt(dag, "t")
    assert (outcome["state"], killed) == ("failed", [True])
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_deferral_carries_its_trigger_and_the_next_attempt_goes_on_there() -> None:
    class Waits(BaseOperator):
        def execute(self, context: Any) -> None:
            self.defer(trigger=DateTimeTrigger(utc(2024, 5, 1)), method_name="after", kwargs={"n": 2}, timeout=9)

        def after(self, context: Any, n: int, event: Any) -> Any:
            return [n, event]

    with DAG("d") as dag:
        Waits(task_id="t")
    defer = attempt(dag, "t")["defer"]
    assert defer["classpath"] == "airflow.providers.standard.triggers.temporal.DateTimeTrigger"
    assert defer["kwargs"]["moment"] == {"__type": "moment", "__value": "2024-05-01T00:00:00+00:00"}
    assert (defer["next_method"], defer["next_kwargs"], defer["timeout"]) == ("after", {"n": 2}, 9.0)
    port = MemoryPort()
    attempt(dag, "t", port, ti={"next_method": "after", "next_kwargs": {"n": 2, "event": "rang"}})
    assert port.xcoms["t", -1, "return_value"] == [2, "rang"]


@pytest.mark.parametrize(
    ("reason", "kind"), [("Trigger timeout", "TaskDeferralTimeout"), ("Trigger failure", "TaskDeferralError")]
)
def test_a_trigger_that_did_not_fire_fails_the_task(reason: str, kind: str) -> None:
    outcome = attempt(one(lambda: 1), "t", ti={"next_method": "__fail__", "next_kwargs": {"error": reason}})
    assert (outcome["state"], outcome["error"]["type"]) == ("failed", f"airflow.exceptions.{kind}")


def test_events_of_outlets_carry_what_the_task_said() -> None:
    a, b, alias = Asset("conf://a"), Asset(name="b", uri="conf://b"), AssetAlias("any")
    with DAG("d") as dag:

        @task(outlets=[a, b, alias])
        def make(outlet_events: Any = None) -> Any:
            outlet_events[a].extra = {"rows": 3}
            yield Metadata(b, {"via": "metadata"})
            outlet_events[alias].add(Asset("conf://c"), extra={"c": 1})

        make()
    assert attempt(dag, "make")["asset_events"] == [
        {"name": "conf://a", "uri": "conf://a", "alias": None, "extra": {"rows": 3}, "partition_key": None},
        {"name": "b", "uri": "conf://b", "alias": None, "extra": {"via": "metadata"}, "partition_key": None},
        {"name": "conf://c", "uri": "conf://c", "alias": "any", "extra": {"c": 1}, "partition_key": None},
    ]


def test_a_failed_task_makes_no_event() -> None:
    dag = one(raises(ValueError()), outlets=[Asset("conf://a")])
    assert "asset_events" not in attempt(dag, "t")


def test_pre_and_post_execute_see_context_and_result() -> None:
    seen: list[Any] = []
    dag = one(
        lambda: 5,
        pre_execute=lambda context: seen.append(context["ti"].task_id),
        post_execute=lambda context, result: seen.append(result),
    )
    attempt(dag, "t")
    assert seen == ["t", 5]


def test_the_execute_callback_runs_before_the_task_and_its_error_does_not_stop_it() -> None:
    order: list[str] = []

    def broken(context: Any) -> None:
        order.append("callback")
        raise RuntimeError("callback")

    outcome = attempt(one(lambda: order.append("task"), on_execute_callback=broken), "t")
    assert (outcome["state"], order) == ("success", ["callback", "task"])


def test_each_callback_of_a_list_runs_with_the_exception_rebuilt() -> None:
    seen: list[Any] = []

    def first(context: Any) -> None:
        seen.append((type(context["exception"]).__name__, context["ti"].state))
        raise RuntimeError("first is broken")

    dag = one(lambda: 1, on_failure_callback=[first, lambda context: seen.append(context["ti"].try_number)])
    error = {"type": "KeyError", "message": "'boom'", "traceback": "…"}
    outcome = run_callback(dag, "failure", "t", start(dag, "t", ti={"try_number": 2}), MemoryPort(), error)
    assert seen == [("KeyError", "failed"), 2]
    assert (outcome["state"], outcome["error"]["message"]) == ("failed", "first is broken")


def test_a_dag_callback_sees_its_run() -> None:
    seen: list[Any] = []
    with DAG(
        "d",
        on_success_callback=lambda context: seen.append(
            (context["dag"].dag_id, context["run_id"], str(context["dag_run"].state))
        ),
    ) as dag:
        Empty(task_id="t")
    outcome = run_callback(dag, "success", None, start(dag, "t", run={"state": "success"}), MemoryPort())
    assert (outcome["state"], seen) == ("success", [("d", "conf_run", "success")])


def test_a_retry_policy_decides_by_the_exception() -> None:
    policy = ExceptionRetryPolicy(
        rules=[
            RetryRule(exception=ConnectionError, retry_delay=dt.timedelta(seconds=30)),
            RetryRule(exception="builtins.ValueError", action=RetryAction.FAIL),
        ]
    )
    assert attempt(one(raises(ConnectionResetError()), retry_policy=policy), "t")["retry_delay"] == 30.0
    assert attempt(one(raises(ValueError()), retry_policy=policy), "t")["retry"] is False
    assert attempt(one(raises(KeyError()), retry_policy=policy), "t")["retry"] is True


def test_the_context_is_there_in_the_task_and_nowhere_else() -> None:
    port = MemoryPort()
    attempt(one(lambda: get_current_context()["ti"].task_id), "t", port)
    assert port.xcoms["t", -1, "return_value"] == "t"
    with pytest.raises(RuntimeError, match="not while the DAG file is read"):
        get_current_context()


def test_triggering_another_dag_pushes_its_run_id_and_waits_for_its_end() -> None:
    from scheduler_app.sdk.operators.trigger_dagrun import TriggerDagRunOperator

    port = MemoryPort()
    port.run_states["r"] = ["running", "failed"]
    with DAG("d") as dag:
        TriggerDagRunOperator(
            task_id="t", trigger_dag_id="other", trigger_run_id="r", conf={"who": "{{ run_id }}"}, logical_date=None,
            wait_for_completion=True, poke_interval=0,
        )  # fmt: skip
    outcome = attempt(dag, "t", port)
    assert (port.triggered[0]["conf"], port.triggered[0]["logical_date"]) == ({"who": "conf_run"}, None)
    assert port.xcoms["t", -1, "trigger_run_id"] == "r"
    assert (outcome["state"], "ended as failed" in outcome["error"]["message"]) == ("failed", True)


@pytest.mark.parametrize("conf", [{"n": 7, "from": "{{ run_id }}"}, '{"n": 7, "from": "{{ run_id }}"}'])
def test_the_conf_of_another_run_may_be_json_text(conf: Any) -> None:
    from scheduler_app.sdk.operators.trigger_dagrun import TriggerDagRunOperator

    port = MemoryPort()
    with DAG("d") as dag:
        TriggerDagRunOperator(task_id="t", trigger_dag_id="other", conf=conf)
        TriggerDagRunOperator(task_id="broken", trigger_dag_id="other", conf="{no")
    attempt(dag, "t", port)
    assert port.triggered[0]["conf"] == {"n": 7, "from": "conf_run"}
    assert attempt(dag, "broken", port)["error"]["type"] == "ValueError"


def test_a_run_that_exists_may_skip_the_task() -> None:
    from scheduler_app.sdk.operators.trigger_dagrun import TriggerDagRunOperator

    port = MemoryPort()
    port.refusal = Refused("DagRunAlreadyExists", "it exists")
    with DAG("d") as dag:
        TriggerDagRunOperator(task_id="t", trigger_dag_id="other", skip_when_already_exists=True)
        TriggerDagRunOperator(task_id="strict", trigger_dag_id="other")
    assert attempt(dag, "t", port)["state"] == "skipped"
    assert attempt(dag, "strict", port)["error"]["type"] == "airflow.exceptions.DagRunAlreadyExists"


def test_a_function_runs_under_another_python() -> None:
    from scheduler_app.sdk.operators.virtualenv import ExternalPythonOperator

    def add(a: int, b: int) -> int:
        import sys

        return a + b + len(sys.argv[:1])

    port = MemoryPort()
    with DAG("d") as dag:
        ExternalPythonOperator(task_id="t", python=sys.executable, python_callable=add, op_args=[1], op_kwargs={"b": 2})
    assert attempt(dag, "t", port)["state"] == "success"
    assert port.xcoms["t", -1, "return_value"] == 4


def test_triggering_a_paused_dag_may_fail_at_once() -> None:
    from scheduler_app.sdk.operators.trigger_dagrun import TriggerDagRunOperator

    port = MemoryPort()
    port.documents["other"] = {"dag_id": "other", "is_paused": True}
    with DAG("d") as dag:
        TriggerDagRunOperator(task_id="t", trigger_dag_id="other", fail_when_dag_is_paused=True)
    assert "unpause it" in attempt(dag, "t", port)["error"]["message"]
    assert port.triggered == []
