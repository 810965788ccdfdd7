"""When a DAG's row needs its next slot computed again (I6), and when planned slots need planning again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduler_app.models import DagModel, schedules

Json = Any

#: Facts of one parse inside a timetable document, not of the schedule.
_PLANNED = ("planned", "planned_after")
#: Part of the planned slots after which the file is parsed again for more.
_USED_SHARE = 0.75
_REFRESH_PAUSE = timedelta(seconds=30)
_ERRORS = ("schedule_error", "schedule_failures", "backoff_until")


def instant(text: str | None) -> datetime | None:
    """An ISO 8601 instant of a document; a naive one is UTC."""
    if text is None:
        return None
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def schedule_hash(document: Json) -> str:
    """Of all that the next slot depends on, besides the last created one."""
    facts = {key: document.get(key) for key in ("catchup", "start_date", "end_date", "timezone")}
    facts |= {key: document[key] for key in ("misfire_policy", "misfire_limit", "schedule_jitter") if key in document}
    facts["timetable"] = _without_plan(document.get("timetable") or {"kind": "null"})
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _without_plan(timetable: Mapping[str, Json]) -> dict[str, Json]:
    return {
        key: _without_plan(value) if key == "timetable" and isinstance(value, dict) else value
        for key, value in timetable.items()
        if key not in _PLANNED
    }


def is_other(row: DagModel, document: Json) -> bool:
    """Whether the file gives another schedule than the one that the next slot was computed from."""
    return row.schedule_hash != schedule_hash(document)


def renew(row: DagModel, document: Json, now: datetime) -> list[str]:
    """Computes the next slot of the (unsaved) row, whose timetable and dates are already the new ones.

    Returns the columns to save. A schedule that raises is the DAG's own error: it has no next run and says why.
    """
    row.schedule_hash = schedule_hash(document)
    row.schedule_error, row.schedule_failures, row.backoff_until = None, 0, None
    try:
        schedules.plan_next(row, now)
    except Exception as error:
        for name in schedules.NEXT_COLUMNS:
            setattr(row, name, None)
        row.schedule_error = f"{type(error).__name__}: {error}"
    return ["schedule_hash", *schedules.NEXT_COLUMNS, *_ERRORS]


def refresh_at(document: Mapping[str, Json], now: datetime) -> datetime | None:
    """When the first planned schedule of a parse result runs short of slots; None: none is planned.

    A plan that is short already (a paused DAG does not use it up, the last slots of a schedule) waits for a while.
    """
    times = [refresh_of(dag.get("timetable") or {}) for dag in document.get("dags") or ()]
    first = min((at for at in times if at is not None), default=None)
    return None if first is None else max(first, now + _REFRESH_PAUSE)


def refresh_of(timetable: Mapping[str, Json]) -> datetime | None:
    """When the planned slots of one timetable run short."""
    planned = _inner(timetable).get("planned")
    if not planned:
        return None
    return instant(planned[int(len(planned) * _USED_SHARE)]["run_after"])


def defines_own_class(document: Mapping[str, Json]) -> bool:
    """Whether a parse result has such a schedule."""
    return any(has_own_class(dag.get("timetable") or {}) for dag in document.get("dags") or ())


def has_own_class(timetable: Mapping[str, Json]) -> bool:
    """Whether only a child can say the next slots of the schedule."""
    return _inner(timetable).get("kind") == "custom"


def _inner(timetable: Mapping[str, Json]) -> Mapping[str, Json]:
    while timetable.get("kind") == "asset_or_time":
        timetable = timetable.get("timetable") or {}
    return timetable
