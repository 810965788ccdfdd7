"""Durations in documents: seconds, or calendar steps such as a month."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from dateutil.relativedelta import relativedelta

Delta = timedelta | relativedelta


def delta_from_doc(doc: Any, *, positive: bool = False) -> Delta:
    """The duration of a document. ValueError when it must be positive and is not."""
    if isinstance(doc, dict):
        delta: Delta = relativedelta(**doc["relativedelta"])
    else:
        delta = timedelta(seconds=doc)
    start = datetime(2024, 1, 1, tzinfo=UTC)
    if positive and start + delta <= start:
        raise ValueError(f"A schedule's interval must be positive, not {delta}.")
    return delta


def seconds(delta: Delta) -> float:
    """About how many seconds; a month counts as 30 days, a year as 365."""
    if isinstance(delta, timedelta):
        return delta.total_seconds()
    days = delta.years * 365 + delta.months * 30 + delta.days
    return float(days * 86400 + delta.hours * 3600 + delta.minutes * 60 + delta.seconds)
