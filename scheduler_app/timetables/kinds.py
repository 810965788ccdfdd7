"""The table of kinds: name in the document → what builds the timetable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler_app.engine.timetable import Timetable
from scheduler_app.timetables.assets import AssetTimetable
from scheduler_app.timetables.continuous import ContinuousTimetable
from scheduler_app.timetables.cron_interval import CronIntervalTimetable
from scheduler_app.timetables.cron_trigger import CronTriggerTimetable
from scheduler_app.timetables.custom import CustomTimetable
from scheduler_app.timetables.delta_interval import DeltaIntervalTimetable
from scheduler_app.timetables.delta_trigger import DeltaTriggerTimetable
from scheduler_app.timetables.events import EventsTimetable
from scheduler_app.timetables.multi_cron_trigger import MultiCronTriggerTimetable
from scheduler_app.timetables.null import NullTimetable
from scheduler_app.timetables.once import OnceTimetable
from scheduler_app.timetables.partitioned import PartitionedTimetable


def _asset_or_time(doc: dict[str, Any]) -> Timetable:
    # asset_or_time holds a timetable of any other kind, so its module needs this table
    from scheduler_app.timetables.asset_or_time import AssetOrTimeTimetable

    return AssetOrTimeTimetable(doc)


KINDS: dict[str, Callable[[dict[str, Any]], Timetable]] = {
    "null": NullTimetable,
    "once": OnceTimetable,
    "continuous": ContinuousTimetable,
    "cron_trigger": CronTriggerTimetable,
    "cron_interval": CronIntervalTimetable,
    "delta_trigger": DeltaTriggerTimetable,
    "delta_interval": DeltaIntervalTimetable,
    "multi_cron_trigger": MultiCronTriggerTimetable,
    "events": EventsTimetable,
    "asset": AssetTimetable,
    "asset_or_time": _asset_or_time,
    "partitioned": PartitionedTimetable,
    "custom": CustomTimetable,
}
