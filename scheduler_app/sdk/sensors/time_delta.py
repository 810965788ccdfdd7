"""TimeDeltaSensor: waits until some time after the run's data interval; WaitSensor: from now."""

from __future__ import annotations

import datetime as dt
import time
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.sensor_base import BaseSensorOperator


class TimeDeltaSensor(BaseSensorOperator):
    """Ends at the end of the data interval plus ``delta`` (at ``run_after`` plus ``delta`` when there is no
    interval)."""

    template_fields = ("delta",)

    def __init__(
        self, *, delta: dt.timedelta, deferrable: bool = False, end_from_trigger: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.delta, self.deferrable, self.end_from_trigger = delta, deferrable, end_from_trigger

    def _target(self, context: Any) -> Any:
        base = context.get("data_interval_end") or context["dag_run"].run_after
        return timezone.convert_to_utc(base + self.delta)

    def poke(self, context: Any) -> bool:
        target = self._target(context)
        self.log.info("Waiting for %s", target)
        return bool(timezone.utcnow() > target)

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            return super().execute(context)
        from scheduler_app.sdk.triggers.temporal import DateTimeTrigger

        target = self._target(context)
        if timezone.utcnow() > target:
            return True
        trigger = DateTimeTrigger(target, end_from_trigger=self.end_from_trigger)
        self.defer(trigger=trigger, method_name="execute_complete", timeout=self.timeout)

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """The time has come."""


class TimeDeltaSensorAsync(TimeDeltaSensor):
    """The same, in the triggerer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**{"deferrable": True, **kwargs})


class WaitSensor(BaseSensorOperator):
    """Waits for ``time_to_wait`` from now: a timedelta, or minutes."""

    template_fields = ("time_to_wait",)

    def __init__(self, time_to_wait: dt.timedelta | int, deferrable: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.time_to_wait = time_to_wait
        self.deferrable = deferrable

    def execute(self, context: Any) -> None:
        wait = self.time_to_wait
        wait = wait if isinstance(wait, dt.timedelta) else dt.timedelta(minutes=int(wait))
        if not self.deferrable:
            time.sleep(wait.total_seconds())
            return
        from scheduler_app.sdk.triggers.temporal import TimeDeltaTrigger

        self.defer(trigger=TimeDeltaTrigger(wait, end_from_trigger=True), method_name="execute_complete")

    def execute_complete(self, context: Any, event: Any = None) -> None:
        """The time is over."""
