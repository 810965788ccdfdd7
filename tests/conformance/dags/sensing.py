"""Sensors: how they end (time-out, soft fail, never fail, error in a poke), what they give back, reschedule and tries."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import pendulum
from airflow.exceptions import AirflowFailException, AirflowSkipException
from airflow.operators.empty import EmptyOperator
from airflow.providers.standard.sensors.bash import BashSensor
from airflow.providers.standard.sensors.date_time import DateTimeSensor
from airflow.providers.standard.sensors.filesystem import FileSensor
from airflow.providers.standard.sensors.python import PythonSensor
from airflow.providers.standard.sensors.time import TimeSensor
from airflow.providers.standard.sensors.weekday import DayOfWeekSensor
from airflow.sdk import DAG, task
from airflow.sensors.base import BaseSensorOperator, PokeReturnValue

START = pendulum.datetime(2024, 1, 1)
FILES = Path(os.environ.get("CONFORMANCE_FILES", "/tmp"))
SECOND = timedelta(seconds=1)


def explode():
    raise ValueError("in poke")


def final():
    raise AirflowFailException("final")


def skip():
    raise AirflowSkipException("in poke")


with DAG("sensing_ends", schedule=None, start_date=START):
    never = {"python_callable": lambda: False, "poke_interval": 0.5, "timeout": 1}
    for mode in ("poke", "reschedule"):
        PythonSensor(task_id=f"{mode}_timeout", mode=mode, retries=2, retry_delay=SECOND, **never) >> EmptyOperator(
            task_id=f"{mode}_after"
        )
        PythonSensor(task_id=f"{mode}_soft", mode=mode, soft_fail=True, **never)
        PythonSensor(task_id=f"{mode}_never_fail", mode=mode, never_fail=True, **never)
        for name, act in (("explode", explode), ("final", final), ("skip", skip)):
            common = {"mode": mode, "python_callable": act, "poke_interval": 0.5, "timeout": 5}
            PythonSensor(task_id=f"{mode}_{name}", retries=1, retry_delay=SECOND, **common)
            PythonSensor(task_id=f"{mode}_{name}_soft", soft_fail=True, **common)
            PythonSensor(task_id=f"{mode}_{name}_never", never_fail=True, **common)

with DAG("sensing_values", schedule=None, start_date=START):

    @task.sensor(poke_interval=0.5, timeout=10)
    def with_value() -> PokeReturnValue:
        return PokeReturnValue(is_done=True, xcom_value={"found": 1})

    @task.sensor(poke_interval=0.5, timeout=10)
    def plain_true():
        return True

    @task.sensor(poke_interval=0.5, timeout=10)
    def truthy():
        return "yes"

    @task.sensor(poke_interval=1, timeout=200, mode="reschedule")
    def third_poke(ti=None):
        count = FILES / "third_poke"
        n = int(count.read_text()) + 1 if count.exists() else 1
        count.write_text(str(n))
        if n < 3:
            return PokeReturnValue(is_done=False, xcom_value=n)
        count.unlink()
        return PokeReturnValue(is_done=True, xcom_value=[n, ti.try_number])

    @task
    def use(value):
        return value

    use(with_value())
    plain_true()
    truthy()
    use.override(task_id="use_third")(third_poke())

    class Plain(BaseSensorOperator):
        def poke(self, context):
            return PokeReturnValue(True, "from class")

    Plain(task_id="by_class", poke_interval=0.5)
    Plain(task_id="by_class_no_push", poke_interval=0.5, do_xcom_push=False)
    PythonSensor(
        task_id="sees_context", python_callable=lambda ds, **k: ds == "2024-05-17", poke_interval=0.5, timeout=2
    )
    PythonSensor(
        task_id="op_args",
        op_args=["{{ ds }}"],
        op_kwargs={"b": 2},
        python_callable=lambda a, b: a and b,
        poke_interval=0.5,
    )

with DAG("sensing_kinds", schedule=None, start_date=START):
    quick = {"poke_interval": 0.5, "timeout": 2}
    BashSensor(task_id="bash_true", bash_command="test {{ ds_nodash }} = 20240517", **quick)
    BashSensor(task_id="bash_false", bash_command="exit 1", **quick)
    BashSensor(task_id="bash_retry_code", bash_command="exit 5", retry_exit_code=5, **quick)
    BashSensor(task_id="bash_other_code", bash_command="exit 6", retry_exit_code=5, **quick)
    DateTimeSensor(task_id="at_text", target_time="{{ data_interval_start }}", **quick)
    DateTimeSensor(task_id="at_past", target_time=datetime(2024, 1, 1), **quick)
    DateTimeSensor(task_id="at_future", target_time=pendulum.datetime(2990, 1, 1), soft_fail=True, **quick)
    TimeSensor(task_id="time_past", target_time=pendulum.time(0, 0, 0), **quick)
    DayOfWeekSensor(task_id="friday", week_day="Friday", use_task_logical_date=True, **quick)
    DayOfWeekSensor(task_id="not_friday", week_day={"Monday", "Tuesday"}, use_task_logical_date=True, **quick)
    FileSensor(task_id="file_there", filepath=__file__, fs_conn_id="conf_fs_root", **quick)
    FileSensor(task_id="file_not_there", filepath="/no/such/file", fs_conn_id="conf_fs_root", **quick)
    FileSensor(
        task_id="file_glob", filepath=str(Path(__file__).parent / "sens*.py"), fs_conn_id="conf_fs_root", **quick
    )

with DAG("sensing_reschedule_retries", schedule=None, start_date=START):

    def fails_once(ti, **_):
        if ti.try_number == 1:
            raise ValueError("first try")
        return True

    PythonSensor(
        task_id="second_try",
        python_callable=fails_once,
        mode="reschedule",
        poke_interval=1,
        retries=1,
        retry_delay=SECOND,
    )
    PythonSensor(
        task_id="exponential",
        python_callable=lambda: False,
        poke_interval=0.5,
        exponential_backoff=True,
        timeout=3,
        max_wait=timedelta(seconds=1),
        soft_fail=True,
    )
