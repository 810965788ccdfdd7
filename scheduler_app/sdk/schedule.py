"""What may be written as ``schedule=`` of a DAG, and the timetable it means."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from scheduler_app.sdk.assets import BaseAsset
from scheduler_app.sdk.timetables import (
    AssetTriggeredTimetable,
    ContinuousTimetable,
    CronTriggerTimetable,
    DeltaTriggerTimetable,
    NullTimetable,
    OnceTimetable,
    Timetable,
)

if TYPE_CHECKING:
    from scheduler_app.sdk.dag import DAG


def as_timetable(schedule: Any, dag: DAG) -> Timetable:
    """The timetable of a ``schedule``. Raises AirflowTimetableInvalid, or TypeError/ValueError for other things."""
    timetable = _read(schedule, dag)
    limit = timetable.active_runs_limit
    if limit is not None and dag.max_active_runs > limit:
        raise ValueError(
            f"DAG {dag.dag_id!r}: the schedule {timetable.summary} allows {limit} active run(s) at a time: "
            f"set max_active_runs={limit}."
        )
    timetable.validate()
    return timetable


def _read(schedule: Any, dag: DAG) -> Timetable:
    if schedule is None:
        return NullTimetable()
    if isinstance(schedule, Timetable):
        return schedule
    if isinstance(schedule, BaseAsset):
        return AssetTriggeredTimetable(schedule)
    if isinstance(schedule, str):
        if schedule == "@once":
            return OnceTimetable()
        if schedule == "@continuous":
            return ContinuousTimetable()
        return CronTriggerTimetable(schedule, timezone=dag.timezone)
    if isinstance(schedule, dt.timedelta) or type(schedule).__name__ == "relativedelta":
        return DeltaTriggerTimetable(schedule)
    if isinstance(schedule, (list, tuple, set)):
        assets = list(schedule)
        if not assets:
            return NullTimetable()
        for item in assets:
            if not isinstance(item, BaseAsset):
                raise ValueError(f"DAG {dag.dag_id!r}: a list as schedule may only hold assets; it has {item!r}.")
        return AssetTriggeredTimetable(assets)
    raise ValueError(
        f"DAG {dag.dag_id!r}: schedule={schedule!r} is none of: None, a cron expression or preset, a timedelta, a "
        "timetable, "
        "an asset expression, a list of assets."
    )
