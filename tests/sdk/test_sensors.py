"""Sensors: looks, time-outs, modes, deferral."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
import time_machine

from scheduler_app.sdk import DAG, BaseSensorOperator, PokeReturnValue, task
from scheduler_app.sdk.exceptions import AirflowException
from scheduler_app.sdk.sensors.bash import BashSensor
from scheduler_app.sdk.sensors.date_time import DateTimeSensor, DateTimeSensorAsync
from scheduler_app.sdk.sensors.external_task import DuplicateStateError, ExternalTaskSensor
from scheduler_app.sdk.sensors.filesystem import FileSensor
from scheduler_app.sdk.sensors.python import PythonSensor
from scheduler_app.sdk.sensors.time_delta import TimeDeltaSensor
from scheduler_app.sdk.sensors.weekday import DayOfWeekSensor

from .memory_port import MemoryPort, attempt

NEVER = {"poke_interval": 0, "timeout": 0}


def python(function: Any, **kwargs: Any) -> DAG:
    with DAG("d") as dag:
        PythonSensor(task_id="t", python_callable=function, **{"poke_interval": 0, "timeout": 30, **kwargs})
    return dag


def broken() -> bool:
    raise ValueError("broken")


def test_a_sensor_looks_until_it_finds() -> None:
    answers = iter([False, False, True])
    assert attempt(python(lambda: next(answers)), "t")["state"] == "success"
    assert list(answers) == []


def test_the_value_of_a_poke_is_pushed() -> None:
    port = MemoryPort()
    with DAG("d") as dag:

        @task.sensor(poke_interval=0, timeout=30)
        def pack() -> PokeReturnValue:
            return PokeReturnValue(is_done=True, xcom_value={"n": 1})

        pack()
    attempt(dag, "pack", port)
    assert port.xcoms["pack", -1, "return_value"] == {"n": 1}


@pytest.mark.parametrize(
    ("function", "arguments", "state", "retry"),
    [
        (lambda: False, {"timeout": 0}, "failed", False),
        (lambda: False, {"timeout": 0, "soft_fail": True}, "skipped", None),
        (lambda: False, {"timeout": 0, "never_fail": True}, "failed", False),
        (broken, {}, "failed", True),
        (broken, {"soft_fail": True}, "failed", True),
        (broken, {"never_fail": True}, "skipped", None),
        (broken, {"silent_fail": True, "timeout": 0}, "failed", False),
    ],
)
def test_time_outs_and_errors_end_a_sensor(function: Any, arguments: Any, state: str, retry: bool | None) -> None:
    outcome = attempt(python(function, **arguments), "t")
    assert (outcome["state"], outcome.get("retry")) == (state, retry)


@time_machine.travel("2024-03-15T10:21:05+00:00", tick=False)
def test_BC_81_reschedule_mode_counts_its_time_out_from_the_first_attempt() -> None:
    dag = python(lambda: False, mode="reschedule", poke_interval=60, timeout=100)
    outcome = attempt(dag, "t")
    assert (outcome["state"], outcome["reschedule_at"]) == ("up_for_reschedule", "2024-03-15T10:22:05+00:00")
    first = {"first_start_date": "2024-03-15T10:19:00+00:00"}
    assert attempt(dag, "t", ti=first)["error"]["type"] == "airflow.exceptions.AirflowSensorTimeout"


def test_an_exponential_wait_doubles_up_to_its_bound_with_a_spread_that_repeats() -> None:
    with DAG("d"):
        sensor = PythonSensor(
            task_id="t", python_callable=bool, poke_interval=10, exponential_backoff=True, max_wait=60
        )
    waits = [sensor._next_interval(lambda: 0.0, tries, {}) for tries in range(1, 6)]
    assert waits == [sensor._next_interval(lambda: 0.0, tries, {}) for tries in range(1, 6)]
    assert all(low <= wait <= min(2 * low, 60) for low, wait in zip((10, 20, 40, 60, 60), waits, strict=True))


def test_wrong_arguments_of_a_sensor_are_refused() -> None:
    with DAG("d"):
        with pytest.raises(AirflowException, match="poke or reschedule, not 'sleep'"):
            PythonSensor(task_id="a", python_callable=bool, mode="sleep")
        with pytest.raises(AirflowException, match="poke_interval"):
            PythonSensor(task_id="b", python_callable=bool, poke_interval=-1)
        with pytest.raises(ValueError, match="exclude each other"):
            PythonSensor(task_id="c", python_callable=bool, soft_fail=True, never_fail=True)


@pytest.mark.parametrize(("command", "state"), [("exit 0", "success"), ("exit 1", "failed")])
def test_a_bash_sensor_goes_by_the_exit_code(command: str, state: str) -> None:
    with DAG("d") as dag:
        BashSensor(task_id="t", bash_command=command, **NEVER)
    assert attempt(dag, "t")["state"] == state


@time_machine.travel("2024-03-15T10:20:31+00:00", tick=False)
def test_a_date_sensor_knows_whether_its_time_has_come() -> None:
    with DAG("d") as dag:
        DateTimeSensor(task_id="past", target_time="{{ logical_date }}", **NEVER)
        DateTimeSensor(task_id="future", target_time="2024-03-15T10:20:32", **NEVER)
        DateTimeSensorAsync(
            task_id="deferred", target_time="{{ macros.datetime(2024, 3, 15, 10, 20, 40) }}", timeout=60
        )
    assert (attempt(dag, "past")["state"], attempt(dag, "future")["state"]) == ("success", "failed")
    defer = attempt(dag, "deferred")["defer"]
    assert (defer["kwargs"]["moment"]["__value"], defer["timeout"]) == ("2024-03-15T10:20:40+00:00", 60.0)
    assert (
        attempt(dag, "deferred", ti={"next_method": "execute_complete", "next_kwargs": {"event": None}})["state"]
        == "success"
    )


@time_machine.travel("2024-03-15T10:20:31+00:00", tick=False)
def test_a_delta_sensor_counts_from_the_data_interval() -> None:
    with DAG("d") as dag:
        TimeDeltaSensor(task_id="t", delta=dt.timedelta(seconds=2), deferrable=True)
        TimeDeltaSensor(task_id="over", delta=dt.timedelta(0), deferrable=True)
    assert attempt(dag, "t")["defer"]["kwargs"]["moment"]["__value"] == "2024-03-15T10:20:32.456000+00:00"
    assert attempt(dag, "over")["state"] == "success"


@time_machine.travel("2024-03-18T00:00:00+00:00", tick=False)
def test_a_weekday_sensor_takes_today_or_the_day_of_the_run() -> None:
    with DAG("d") as dag:
        DayOfWeekSensor(task_id="today", week_day={"Monday"}, **NEVER)
        DayOfWeekSensor(task_id="of_run", week_day="Friday", use_task_logical_date=True, **NEVER)
        DayOfWeekSensor(task_id="other", week_day="Friday", **NEVER)
    assert [attempt(dag, name)["state"] for name in ("today", "of_run", "other")] == ["success", "success", "failed"]


def test_a_file_sensor_finds_files_patterns_and_folders_with_files(tmp_path: Any) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "full" / "a.txt").touch()
    with DAG("d") as dag:
        for name, path in (("file", "full/a.txt"), ("pattern", "full/*.txt"), ("folder", "full"), ("none", "empty")):
            FileSensor(task_id=name, filepath=str(tmp_path / path), **NEVER)
    states = {name: attempt(dag, name)["state"] for name in dag.task_ids}
    assert states == {"file": "success", "pattern": "success", "folder": "success", "none": "failed"}


def external(**kwargs: Any) -> DAG:
    with DAG("d") as dag:
        ExternalTaskSensor(task_id="t", external_dag_id="other", **{**NEVER, **kwargs})
    return dag


@pytest.mark.parametrize(
    ("arguments", "states", "ends"),
    [
        ({"external_task_id": "a"}, {"a": "success"}, "success"),
        ({"external_task_id": "a"}, {"a": "running"}, "failed"),
        ({"external_task_ids": ["a", "b"]}, {"a": "success", "b": "failed"}, "failed"),
        ({"external_task_id": "a", "failed_states": ["failed"]}, {"a": "failed"}, "failed"),
        ({"external_task_id": "a", "failed_states": ["failed"], "soft_fail": True}, {"a": "failed"}, "skipped"),
        ({"external_task_id": "a", "skipped_states": ["skipped"]}, {"a": "skipped"}, "skipped"),
        ({"external_task_id": "a", "allowed_states": ["failed"]}, {"a": "failed"}, "success"),
        ({"external_task_group_id": "g"}, {"g.a": "success", "g.b": "success"}, "success"),
        ({"external_task_group_id": "g"}, {"g.a": "success", "g.b": None}, "failed"),
    ],
)
def test_an_external_sensor_goes_by_the_states_of_the_other_dag(arguments: Any, states: Any, ends: str) -> None:
    port = MemoryPort()
    port.ti_states = states
    assert attempt(external(**arguments), "t", port)["state"] == ends


def test_an_external_sensor_looks_at_the_shifted_date() -> None:
    port = MemoryPort()
    attempt(external(external_task_id="a", execution_delta=dt.timedelta(days=1)), "t", port)
    attempt(external(external_task_id="a", execution_date_fn=lambda date: date - dt.timedelta(days=2)), "t", port)
    assert [filters["logical_dates"][0].day for _, filters in port.questions] == [14, 13]


def test_an_external_sensor_checks_existence_when_told_to() -> None:
    port = MemoryPort()
    missing = attempt(external(check_existence=True), "t", port)
    port.documents["other"] = {"tasks": [{"task_id": "a"}]}
    no_task = attempt(external(check_existence=True, external_task_id="b"), "t", port)
    assert ["no DAG 'other'" in missing["error"]["message"], "no task 'b'" in no_task["error"]["message"]] == [
        True,
        True,
    ]


def test_an_external_sensor_refuses_a_state_in_two_lists_and_unknown_states() -> None:
    with pytest.raises(DuplicateStateError):
        external(external_task_id="a", allowed_states=["failed"], failed_states=["failed"])
    with pytest.raises(ValueError, match="'done'"):
        external(external_task_id="a", allowed_states=["done"])


def test_a_sensor_without_poke_says_what_to_define() -> None:
    class Mine(BaseSensorOperator):
        pass

    with DAG("d") as dag:
        Mine(task_id="t")
    assert "Mine has no poke(self, context)" in attempt(dag, "t")["error"]["message"]


def test_a_deferrable_file_sensor_that_finds_its_file_at_once_pushes_nothing(tmp_path: Any) -> None:
    (tmp_path / "there").touch()
    port = MemoryPort()
    with DAG("d") as dag:
        FileSensor(task_id="t", filepath=str(tmp_path / "there"), deferrable=True)
    assert attempt(dag, "t", port)["state"] == "success"
    assert port.xcoms == {}
