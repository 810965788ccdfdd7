"""BaseSensorOperator: a task that looks again and again until something is there."""

from __future__ import annotations

import datetime as dt
import hashlib
import time
from collections.abc import Callable
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    AirflowTaskTimeout,
    TaskDeferralError,
)
from scheduler_app.sdk.operator import BaseOperator
from scheduler_app.sdk.operators.branch import SkipMixin

MODES = ("poke", "reschedule")
DEFAULT_TIMEOUT = 7 * 24 * 60 * 60
#: the longest wait between two looks in poke mode without an upper bound of the author's
_LONGEST_BACKOFF = 24 * 60 * 60


class PokeReturnValue:
    """What ``poke`` may return in place of a truth value: with an XCom for when it is done."""

    def __init__(self, is_done: bool, xcom_value: Any = None) -> None:
        self.is_done, self.xcom_value = is_done, xcom_value

    def __bool__(self) -> bool:
        return self.is_done


class BaseSensorOperator(BaseOperator, SkipMixin):
    """Override :meth:`poke`.

    ``poke_interval`` and ``timeout`` in seconds (or timedeltas). Mode ``poke`` holds its slot while it waits,
    ``reschedule`` ends the attempt between two looks. A time-out fails the task without retries; with
    ``soft_fail`` it skips it; with ``never_fail`` any error skips it; with ``silent_fail`` an error in ``poke`` counts
    as "not yet".
    """

    ui_color = "#e6f1f2"
    valid_modes = MODES
    inherits_from_skipmixin = False
    _is_dummy_sensor = False

    def __init__(
        self,
        *,
        poke_interval: dt.timedelta | float = 60,
        timeout: dt.timedelta | float = DEFAULT_TIMEOUT,
        soft_fail: bool = False,
        mode: str = "poke",
        exponential_backoff: bool = False,
        max_wait: dt.timedelta | float | None = None,
        silent_fail: bool = False,
        never_fail: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.poke_interval = _seconds(poke_interval, "poke_interval", self.task_id)
        self.timeout = _seconds(timeout, "timeout", self.task_id)
        self.soft_fail, self.silent_fail, self.never_fail = soft_fail, silent_fail, never_fail
        self.mode, self.exponential_backoff = mode, exponential_backoff
        self.max_wait = None if max_wait is None else dt.timedelta(seconds=_seconds(max_wait, "max_wait", self.task_id))
        if soft_fail and never_fail:
            raise ValueError(f"Sensor {self.task_id!r}: soft_fail and never_fail exclude each other; choose one.")
        if mode not in MODES:
            raise AirflowException(f"Sensor {self.task_id!r}: mode is poke or reschedule, not {mode!r}.")

    def poke(self, context: Any) -> bool | PokeReturnValue:
        """One look. True (or a done PokeReturnValue) ends the wait."""
        raise NotImplementedError(f"{type(self).__name__} has no poke(self, context): define it.")

    @property
    def reschedule(self) -> bool:
        return self.mode == "reschedule"

    def execute(self, context: Any) -> Any:
        waited = self._stopwatch(context)
        tries = 1
        while True:
            answer = self._look(context)
            if answer:
                self.log.info("The sensor found what it waited for.")
                return answer.xcom_value if isinstance(answer, PokeReturnValue) else None
            if waited() > self.timeout:
                self._time_out(waited())
            pause = self._next_interval(waited, tries, context)
            if self.reschedule:
                raise AirflowRescheduleException(timezone.utcnow() + dt.timedelta(seconds=pause))
            time.sleep(pause)
            tries += 1

    def _stopwatch(self, context: Any) -> Callable[[], float]:
        """Seconds since the wait began: in reschedule mode since the first attempt of this try."""
        if not self.reschedule:
            begin = time.monotonic()
            return lambda: time.monotonic() - begin
        first = context["ti"].first_start_date or timezone.utcnow()
        return lambda: float((timezone.utcnow() - first).total_seconds())

    def _look(self, context: Any) -> Any:
        try:
            return self.poke(context)
        except (AirflowSensorTimeout, AirflowTaskTimeout, AirflowFailException, TaskDeferralError) as error:
            if self.soft_fail:
                raise AirflowSkipException("Skipping due to soft_fail is set to True.") from error
            if self.never_fail:
                raise AirflowSkipException("Skipping due to never_fail is set to True.") from error
            raise
        except AirflowSkipException:
            raise
        except Exception as error:
            if self.silent_fail:
                self.log.exception("The look failed; silent_fail is set, so the sensor looks again.")
                return False
            if self.never_fail:
                raise AirflowSkipException("Skipping due to never_fail is set to True.") from error
            raise

    def _time_out(self, waited: float) -> None:
        message = f"The sensor waited {waited:.1f} seconds and found nothing; its timeout is {self.timeout:g} seconds."
        if self.soft_fail:  # never_fail is about errors of a look: a time-out fails, as in Airflow
            raise AirflowSkipException(message)
        raise AirflowSensorTimeout(message)

    def _next_interval(self, waited: Callable[[], float], tries: int, context: Any) -> float:
        """Seconds to the next look: constant, or doubling with a spread that depends on the task alone."""
        if not self.exponential_backoff:
            return self.poke_interval
        if self.reschedule:
            tries = context["ti"].reschedule_count + 1
        longest = self.max_wait.total_seconds() if self.max_wait is not None else _LONGEST_BACKOFF
        base = min(self.poke_interval * 2 ** min(tries - 1, 60), longest)
        seed = hashlib.sha1(f"{self.dag_id}#{self.task_id}#{tries}".encode(), usedforsecurity=False).digest()
        return min(base * (1 + seed[0] / 255), longest)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Any) -> Any:
        """After a deferral: errors of the trigger are treated as those of a look."""
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except (AirflowException, AirflowTaskTimeout) as error:
            if isinstance(error, (AirflowSkipException, AirflowRescheduleException)):
                raise
            if self.soft_fail:
                raise AirflowSkipException(str(error)) from error
            raise
        except Exception as error:
            if self.never_fail:
                raise AirflowSkipException(str(error)) from error
            raise

    @classmethod
    def get_serialized_fields(cls) -> frozenset[str]:
        return frozenset({"reschedule", "mode"})


def _seconds(value: Any, name: str, task_id: str) -> float:
    if isinstance(value, dt.timedelta):
        value = value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise AirflowException(
            f"Sensor {task_id!r}: {name} is a number of seconds (or a timedelta) of 0 or more, not {value!r}."
        )
    return float(value) if isinstance(value, float) else value


def poke_mode_only(cls: Any) -> Any:
    """Class decorator: the sensor keeps state in memory between looks, so mode ``reschedule`` is refused."""

    def get_mode(self: Any) -> str:
        return "poke"

    def set_mode(self: Any, value: str) -> None:
        if value != "poke":
            raise ValueError(f"{cls.__name__} works in mode 'poke' only, not {value!r}.")

    cls.mode = property(get_mode, set_mode)
    return cls
