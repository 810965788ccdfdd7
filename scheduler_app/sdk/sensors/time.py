"""TimeSensor: waits for a time of the day of the run."""

from __future__ import annotations

import datetime as dt
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.sensor_base import BaseSensorOperator


class TimeSensor(BaseSensorOperator):
    """``target_time`` today, in the DAG's time zone unless it has one of its own."""

    def __init__(
        self, *, target_time: dt.time, deferrable: bool = False, end_from_trigger: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.target_time, self.deferrable, self.end_from_trigger = target_time, deferrable, end_from_trigger

    @property
    def target_datetime(self) -> Any:
        """Today's target in UTC."""
        zone = self.target_time.tzinfo or (self.dag.timezone if self.dag is not None else dt.UTC)
        today = timezone.utcnow().astimezone(zone).date()
        return timezone.convert_to_utc(dt.datetime.combine(today, self.target_time.replace(tzinfo=None), tzinfo=zone))

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            return super().execute(context)
        from scheduler_app.sdk.triggers.temporal import DateTimeTrigger

        trigger = DateTimeTrigger(self.target_datetime, end_from_trigger=self.end_from_trigger)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=self.timeout)

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """The time has come."""

    def poke(self, context: Any) -> bool:
        target = self.target_datetime
        self.log.info("Waiting for %s", target)
        return bool(timezone.utcnow() > target)


class TimeSensorAsync(TimeSensor):
    """The same, in the triggerer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"deferrable": True, **kwargs})
