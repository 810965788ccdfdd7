"""What the address of a list of runs asks for. The list, and what is done to all that it shows, read it alike."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from typing import Any

from django.utils import timezone

from scheduler_app.engine import states
from scheduler_app.queries.page_runs import TYPES, RunFilter

#: Days that can be asked for: their midnights are moments in every zone.
FIRST, LAST = date(1970, 1, 1), date(9000, 1, 1)


def wanted(asked: Mapping[str, Any], dag_id: str) -> RunFilter:
    """What the address of a list asks for: ``q``, ``state``, ``type``, ``day``. An unknown value counts for nothing."""
    state, run_type, day = asked.get("state", ""), asked.get("type", ""), day_of(asked)
    return RunFilter(
        dag_id=dag_id,
        text=asked.get("q", ""),
        state=state if state in states.RUN_STATES else "",
        run_type=run_type if run_type in TYPES else "",
        since=midnight(day) if day else None,
        until=midnight(day + timedelta(days=1)) if day else None,
    )


def day_of(asked: Mapping[str, Any]) -> date | None:
    """``day`` as a date; None for none, or for one that no calendar here shows."""
    try:
        found = date.fromisoformat(asked.get("day", ""))
    except ValueError:
        return None
    return found if FIRST <= found < LAST else None


def midnight(day: date) -> datetime:
    """When a day begins in the reader's zone."""
    return timezone.make_aware(datetime.combine(day, time.min))
