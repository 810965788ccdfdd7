"""Deferral: own triggers, time-outs, errors, several rounds, values kept in between, starting from a trigger."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pendulum
from airflow.exceptions import TaskDeferred, TaskDeferralError, TaskDeferralTimeout
from airflow.operators.empty import EmptyOperator
from airflow.providers.standard.sensors.date_time import DateTimeSensorAsync
from airflow.providers.standard.sensors.filesystem import FileSensor
from airflow.providers.standard.sensors.time import TimeSensor
from airflow.providers.standard.sensors.time_delta import TimeDeltaSensor, TimeDeltaSensorAsync
from airflow.providers.standard.triggers.temporal import TimeDeltaTrigger
from airflow.sdk import DAG, BaseOperator, BaseSensorOperator
from airflow.triggers.base import StartTriggerArgs

from deferring_triggers import Countdown

START = pendulum.datetime(2024, 1, 1)


class Waits(BaseOperator):
    template_fields = ("word",)

    def __init__(self, *, word="w", trigger=None, rounds=1, limit=None, **kwargs):
        super().__init__(**kwargs)
        self.word, self.trigger, self.rounds, self.limit = word, trigger or {"seconds": 0.5}, rounds, limit

    def execute(self, context):
        self.defer(
            trigger=Countdown(**self.trigger),
            method_name="resume",
            kwargs={"round": 1, "kept": [self.word, (1,)]},
            timeout=self.limit,
        )

    def resume(self, context, event=None, round=None, kept=None):
        if round < self.rounds:
            self.defer(
                trigger=Countdown(**self.trigger), method_name="resume", kwargs={"round": round + 1, "kept": kept}
            )
        return {
            "event": event,
            "round": round,
            "kept": [kept[0], list(kept[1])],
            "word": self.word,
            "try": context["ti"].try_number,
        }


class FailsAfter(Waits):
    def resume(self, context, event=None, **kwargs):
        if context["ti"].try_number == 1:
            raise ValueError("after the trigger")
        return "second try"


class Catches(Waits):
    def resume(self, context, event=None, **kwargs):
        return "not here"

    def resume_execution(self, next_method, next_kwargs, context):
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            return "timed out"
        except TaskDeferralError as error:
            return f"caught {type(error).__name__}"


class NoMethod(Waits):
    def execute(self, context):
        raise TaskDeferred(trigger=Countdown(0.5), method_name="no_such_method")


class FromTrigger(BaseOperator):
    start_trigger_args = StartTriggerArgs(
        trigger_cls="deferring_triggers.Countdown",
        trigger_kwargs={"seconds": 0.5, "payload": "from start"},
        next_method="resume",
        next_kwargs=None,
        timeout=None,
    )
    start_from_trigger = True

    def resume(self, context, event=None):
        return event


class SensorDefers(BaseSensorOperator):
    def execute(self, context):
        self.defer(trigger=Countdown(60), method_name="resume", timeout=timedelta(seconds=self.timeout))

    def resume(self, context, event=None):
        return event


with DAG("deferring_own", schedule=None, start_date=START):
    Waits(task_id="once", word="{{ ds }}") >> EmptyOperator(task_id="after")
    Waits(task_id="three_rounds", rounds=3)
    Waits(task_id="payload", trigger={"seconds": 0.1, "payload": {"a": [1, "x"], "when": START}})
    Waits(task_id="explodes", trigger={"seconds": 0.1, "explode": True}, retries=1, retry_delay=timedelta(seconds=1))
    Waits(task_id="ends_silently", trigger={"seconds": 0.1, "silent": True})
    Waits(task_id="limit", trigger={"seconds": 60}, limit=timedelta(seconds=2))
    Waits(task_id="execution_timeout", trigger={"seconds": 60}, execution_timeout=timedelta(seconds=2))
    FailsAfter(task_id="retried", retries=1, retry_delay=timedelta(seconds=1))
    Catches(task_id="catches_timeout", trigger={"seconds": 60}, limit=timedelta(seconds=1))
    Catches(task_id="catches_error", trigger={"seconds": 0.1, "explode": True})
    NoMethod(task_id="no_method")
    FromTrigger(task_id="from_trigger")
    SensorDefers(task_id="sensor_timeout", timeout=2)
    SensorDefers(task_id="sensor_soft", timeout=2, soft_fail=True)
    Waits.partial(task_id="mapped").expand(word=["p", "q"])

with DAG("deferring_sensors", schedule=None, start_date=START):
    TimeDeltaSensorAsync(task_id="delta_async", delta=timedelta(seconds=1))
    TimeDeltaSensor(task_id="delta_end", delta=timedelta(seconds=1), deferrable=True)
    DateTimeSensorAsync(task_id="at", target_time=datetime(2024, 1, 1, tzinfo=timezone.utc))
    TimeSensor(task_id="time", target_time=pendulum.time(0, 0, 1), deferrable=True)
    FileSensor(
        task_id="file", filepath=__file__, fs_conn_id="conf_fs_root", deferrable=True, poke_interval=1, timeout=20
    )
    FileSensor(
        task_id="no_file", filepath="/no/such", fs_conn_id="conf_fs_root", deferrable=True, poke_interval=1, timeout=2
    )
