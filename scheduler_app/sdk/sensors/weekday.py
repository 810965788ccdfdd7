"""DayOfWeekSensor: waits for a day of the week."""

from __future__ import annotations

from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.sensor_base import BaseSensorOperator
from scheduler_app.sdk.weekday import WeekDay


class DayOfWeekSensor(BaseSensorOperator):
    """``week_day``: a day, its name, or several. Of the present day, or with ``use_task_logical_date`` of the run's
    date."""

    def __init__(
        self,
        *,
        week_day: Any,
        use_task_logical_date: bool = False,
        use_task_execution_day: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.week_day = week_day
        self.use_task_logical_date = use_task_logical_date or use_task_execution_day
        self._week_day_num = WeekDay.validate_week_day(week_day)

    def poke(self, context: Any) -> bool:
        if self.use_task_logical_date:
            day = context.get("logical_date") or context["dag_run"].run_after
        else:
            day = timezone.utcnow()
        return day.isoweekday() in self._week_day_num
