"""BranchDayOfWeekOperator: one branch on some days of the week, another on the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.operators.branch import BaseBranchOperator
from scheduler_app.sdk.weekday import WeekDay


class BranchDayOfWeekOperator(BaseBranchOperator):
    """Of the present day, or with ``use_task_logical_date`` of the run's date."""

    def __init__(
        self,
        *,
        follow_task_ids_if_true: str | Iterable[str],
        follow_task_ids_if_false: str | Iterable[str],
        week_day: Any,
        use_task_logical_date: bool = False,
        use_task_execution_day: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.follow_task_ids_if_true, self.follow_task_ids_if_false = follow_task_ids_if_true, follow_task_ids_if_false
        self.week_day = week_day
        self.use_task_logical_date = use_task_logical_date or use_task_execution_day
        self._week_day_num = WeekDay.validate_week_day(week_day)

    def choose_branch(self, context: Any) -> Any:
        if self.use_task_logical_date:
            now = context.get("logical_date") or context["dag_run"].run_after
        else:
            now = timezone.utcnow()
        return self.follow_task_ids_if_true if now.isoweekday() in self._week_day_num else self.follow_task_ids_if_false
