"""DateTimeSensor: waits for a point in time."""

from __future__ import annotations

import datetime as dt
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.sensor_base import BaseSensorOperator
from scheduler_app.sdk.triggers.base import StartTriggerArgs


class DateTimeSensor(BaseSensorOperator):
    """``target_time``: a datetime, or text (templated). Without a zone it is UTC."""

    template_fields = ("target_time",)

    def __init__(self, *, target_time: str | dt.datetime, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(target_time, dt.datetime):
            target_time = target_time.isoformat()
        elif not isinstance(target_time, str):
            raise TypeError(f"target_time of {self.task_id!r} is a datetime or text, not {target_time!r}.")
        self.target_time = target_time

    @property
    def moment(self) -> Any:
        """The target as an aware DateTime in UTC."""
        return timezone.parse(self.target_time).in_timezone("UTC")

    def poke(self, context: Any) -> bool:
        self.log.info("Waiting for %s", self.target_time)
        return bool(timezone.utcnow() > self.moment)


class DateTimeSensorAsync(DateTimeSensor):
    """The same, in the triggerer. ``start_from_trigger``: without a process first; ``target_time`` is no template then.

    ``end_from_trigger``: it succeeds when the time has come, without a process after.
    """

    def __init__(self, *, start_from_trigger: bool = False, end_from_trigger: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.end_from_trigger = end_from_trigger
        self.start_from_trigger = start_from_trigger
        if start_from_trigger:
            self.start_trigger_args = StartTriggerArgs(
                trigger_cls="airflow.providers.standard.triggers.temporal.DateTimeTrigger",
                trigger_kwargs={"moment": self.moment, "end_from_trigger": end_from_trigger},
                next_method="execute_complete",
                timeout=dt.timedelta(seconds=self.timeout),
            )

    def execute(self, context: Any) -> Any:
        from scheduler_app.sdk.triggers.temporal import DateTimeTrigger

        trigger = DateTimeTrigger(self.moment, end_from_trigger=self.end_from_trigger)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=self.timeout)

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """The time has come."""
