"""BranchDateTimeOperator: one branch inside a stretch of time, another outside."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.exceptions import AirflowException
from scheduler_app.sdk.operators.branch import BaseBranchOperator


class BranchDateTimeOperator(BaseBranchOperator):
    """Bounds are datetimes, or times of the day; a lower time after the upper one means "over midnight"."""

    def __init__(
        self,
        *,
        follow_task_ids_if_true: str | Iterable[str],
        follow_task_ids_if_false: str | Iterable[str],
        target_lower: dt.datetime | dt.time | None,
        target_upper: dt.datetime | dt.time | None,
        use_task_logical_date: bool = False,
        use_task_execution_date: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if target_lower is None and target_upper is None:
            raise AirflowException(f"Task {self.task_id!r} needs target_lower or target_upper.")
        self.target_lower, self.target_upper = target_lower, target_upper
        self.follow_task_ids_if_true, self.follow_task_ids_if_false = follow_task_ids_if_true, follow_task_ids_if_false
        self.use_task_logical_date = use_task_logical_date or use_task_execution_date

    def choose_branch(self, context: Any) -> Any:
        if self.use_task_logical_date:
            now = context.get("logical_date") or context["dag_run"].run_after
        else:
            now = timezone.utcnow()
        lower, upper = target_times(self.target_lower, self.target_upper, now)
        inside = (lower is None or lower <= now) and (upper is None or now <= upper)
        return self.follow_task_ids_if_true if inside else self.follow_task_ids_if_false


def target_times(lower: Any, upper: Any, base: Any) -> tuple[Any, Any]:
    """The bounds as aware datetimes on the day of ``base``. Raises ValueError for a datetime beside a time."""
    if lower is not None and upper is not None and isinstance(lower, dt.datetime) != isinstance(upper, dt.datetime):
        raise ValueError("target_lower and target_upper are both datetimes, or both times of the day.")
    if isinstance(lower, dt.datetime) or isinstance(upper, dt.datetime):
        return timezone.coerce_datetime(lower), timezone.coerce_datetime(upper)
    day_lower, day_upper = _on(lower, base), _on(upper, base)
    if day_lower is not None and day_upper is not None and day_upper < day_lower:
        day_upper = day_upper + dt.timedelta(days=1)
    return day_lower, day_upper


def _on(time: dt.time | None, base: Any) -> Any:
    if time is None:
        return None
    return timezone.coerce_datetime(dt.datetime.combine(base.date(), time, tzinfo=time.tzinfo or dt.UTC))
