"""Triggers that wait for a time."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator
from typing import Any

from scheduler_app.sdk import timezone
from scheduler_app.sdk.triggers.base import BaseTrigger, TaskSuccessEvent, TriggerEvent

#: a sleep no longer than this, so that a changed system clock is noticed
_LONGEST_SLEEP = 60.0


class DateTimeTrigger(BaseTrigger):
    """Fires at ``moment`` (aware). ``end_from_trigger``: the task then succeeds without another attempt."""

    def __init__(self, moment: dt.datetime, *, end_from_trigger: bool = False) -> None:
        super().__init__()
        if not isinstance(moment, dt.datetime):
            raise TypeError(f"DateTimeTrigger waits for a datetime, not {moment!r}.")
        if moment.tzinfo is None:
            raise ValueError("DateTimeTrigger needs an aware datetime: give it a time zone.")
        self.moment = timezone.convert_to_utc(moment)
        self.end_from_trigger = end_from_trigger

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            "airflow.providers.standard.triggers.temporal.DateTimeTrigger",
            {"moment": self.moment, "end_from_trigger": self.end_from_trigger},
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:  # type: ignore[override]
        while (left := (self.moment - timezone.utcnow()).total_seconds()) > 0:
            await asyncio.sleep(min(left, _LONGEST_SLEEP))
        yield TaskSuccessEvent() if self.end_from_trigger else TriggerEvent(self.moment)


class TimeDeltaTrigger(DateTimeTrigger):
    """Fires a while from now; serialised as the moment that this is."""

    def __init__(self, delta: dt.timedelta, *, end_from_trigger: bool = False) -> None:
        super().__init__(moment=timezone.utcnow() + delta, end_from_trigger=end_from_trigger)
