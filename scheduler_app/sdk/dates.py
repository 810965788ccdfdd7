"""Date functions of Airflow 2 that files still import."""

from __future__ import annotations

import datetime as dt
from typing import Any

from scheduler_app.sdk import timezone

cron_presets: dict[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *",
    "@yearly": "0 0 1 1 *",
}


def days_ago(n: int, hour: int = 0, minute: int = 0, second: int = 0, microsecond: int = 0) -> Any:
    """Midnight (or the given time) of the day ``n`` days before today, in UTC. A fixed date is better as a
    start_date."""
    today = timezone.utcnow().replace(hour=hour, minute=minute, second=second, microsecond=microsecond)
    return today - dt.timedelta(days=n)


def date_range(
    start_date: dt.datetime,
    end_date: dt.datetime | None = None,
    num: int | None = None,
    delta: dt.timedelta = dt.timedelta(days=1),
) -> list[dt.datetime]:
    """Dates ``delta`` apart: up to ``end_date``, or ``num`` of them. Raises ValueError when both or none are given."""
    if (end_date is None) == (num is None):
        raise ValueError("date_range() takes end_date or num, and not both.")
    dates, current = [], start_date
    while (len(dates) < abs(num)) if num is not None else (end_date is not None and current <= end_date):
        dates.append(current)
        current = current + delta
    return dates


def parse_execution_date(text: str) -> Any:
    return timezone.parse(text)
