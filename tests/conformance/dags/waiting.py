"""What ends a sensor: values, errors, time, in both modes."""

from __future__ import annotations

import datetime as dt

import pendulum
from airflow.exceptions import (
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
)
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, BaseSensorOperator, PokeReturnValue

START = pendulum.datetime(2024, 1, 1)
K = {"poke_interval": 1, "timeout": 4}


class Sn(BaseSensorOperator):
    """Pokes with what it was given; of a list with one after the other."""

    def __init__(self, what, **kwargs):
        super().__init__(**kwargs)
        self.what = what

    def poke(self, context):
        if isinstance(self.what, BaseException):
            raise self.what
        return self.what.pop(0) if isinstance(self.what, list) else self.what


with DAG("waiting_ends", schedule=None, start_date=START):
    Sn(task_id="seq", what=[False, True], **K)
    Sn(task_id="val", what=[False, PokeReturnValue(True, "x")], **K)
    Sn(task_id="not_done_val", what=PokeReturnValue(False, "x"), **K)
    Sn(task_id="none", what=None, **K)
    Sn(task_id="retries", what=False, retries=2, retry_delay=dt.timedelta(seconds=1), **K)
    Sn(task_id="raise_retry", what=ValueError("v"), retries=1, retry_delay=dt.timedelta(seconds=1), **K)
    Sn(task_id="silent", what=ValueError("v"), silent_fail=True, **K)
    Sn(task_id="never", what=ValueError("v"), never_fail=True, **K)
    Sn(task_id="soft", what=ValueError("v"), soft_fail=True, **K)
    Sn(task_id="soft_timeout", what=False, soft_fail=True, **K) >> EmptyOperator(task_id="after_soft")
    Sn(task_id="never_timeout", what=False, never_fail=True, **K)
    Sn(task_id="skip", what=AirflowSkipException(), **K)
    Sn(task_id="fail", what=AirflowFailException(), retries=2, **K)
    Sn(task_id="fail_soft", what=AirflowFailException(), soft_fail=True, **K)
    Sn(task_id="own_timeout", what=AirflowSensorTimeout("t"), retries=1, retry_delay=dt.timedelta(seconds=1), **K)
    Sn(task_id="exp", what=[False, False, True], exponential_backoff=True, poke_interval=1, timeout=20)
    Sn(
        task_id="exp_max",
        what=[False, False, True],
        exponential_backoff=True,
        max_wait=dt.timedelta(seconds=1),
        poke_interval=1,
        timeout=20,
    )
    Sn(task_id="resched_timeout", what=False, mode="reschedule", poke_interval=1, timeout=3)
    Sn(task_id="exec_timeout", what=False, poke_interval=1, timeout=30, execution_timeout=dt.timedelta(seconds=2))
    Sn(
        task_id="exec_timeout_soft",
        what=False,
        poke_interval=1,
        timeout=30,
        execution_timeout=dt.timedelta(seconds=2),
        soft_fail=True,
    )
    Sn.partial(task_id="mapped", **K).expand(what=[True, 5])
