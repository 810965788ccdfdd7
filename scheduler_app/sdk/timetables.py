"""Schedules as DAG files write them. Each built-in one is a document of ``scheduler_app.timetables``; an author's own
subclass of :class:`Timetable` answers in the child and becomes a document of kind ``custom``."""

from __future__ import annotations

import datetime as dt
import functools
from collections.abc import Collection
from typing import Any, NamedTuple

from scheduler_app.sdk import timezone
from scheduler_app.sdk.assets import AssetAll, BaseAsset
from scheduler_app.sdk.exceptions import AirflowTimetableInvalid


class DataInterval(NamedTuple):
    """The time that a run is about; both ends are aware pendulum DateTimes."""

    start: Any
    end: Any

    @classmethod
    def exact(cls, at: Any) -> DataInterval:
        return cls(at, at)


class TimeRestriction(NamedTuple):
    """Where a timetable may create runs."""

    earliest: Any
    latest: Any
    catchup: bool


class DagRunInfo(NamedTuple):
    """One run to be created."""

    run_after: Any
    data_interval: DataInterval | None

    @classmethod
    def exact(cls, at: Any) -> DagRunInfo:
        return cls(run_after=at, data_interval=DataInterval.exact(at))

    @classmethod
    def interval(cls, start: Any, end: Any) -> DagRunInfo:
        return cls(run_after=end, data_interval=DataInterval(start, end))

    @property
    def logical_date(self) -> Any:
        return self.data_interval.start if self.data_interval is not None else None


class Timetable:
    """Base of an author's own schedule: override :meth:`next_dagrun_info` and :meth:`infer_manual_data_interval`."""

    description: str = ""
    periodic: bool = True
    can_be_scheduled: bool = True
    active_runs_limit: int | None = None
    asset_condition: Any = None
    partitioned: bool = False
    partitioned_at_runtime: bool = False

    @property
    def summary(self) -> str:
        return type(self).__name__

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        raise NotImplementedError(f"{type(self).__name__} has no next_dagrun_info(): define it.")

    def infer_manual_data_interval(self, *, run_after: Any) -> DataInterval:
        raise NotImplementedError(f"{type(self).__name__} has no infer_manual_data_interval(): define it.")

    def serialize(self) -> dict[str, Any]:
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Timetable:
        return cls(**data)

    def validate(self) -> None:
        """Hook: raise AirflowTimetableInvalid for wrong arguments."""

    def to_doc(self) -> dict[str, Any]:
        """The timetable document."""
        return {
            "kind": "custom",
            "class": f"{type(self).__module__}.{type(self).__qualname__}",
            "summary": self.summary,
            "description": self.description,
            "periodic": bool(self.periodic),
            "can_be_scheduled": bool(self.can_be_scheduled),
        }


class Documented(Timetable):
    """A schedule that ``scheduler_app.timetables`` knows. ``document`` is set once, in ``__init__``."""

    document: dict[str, Any]

    def _accept(self, document: dict[str, Any]) -> None:
        """Raises AirflowTimetableInvalid for what cannot be read, naming it."""
        self.document = document
        if document["kind"] not in _CANNOT_BE_WRONG:
            _ = self._pure

    @functools.cached_property
    def _pure(self) -> Any:
        from scheduler_app.timetables import from_doc

        try:
            return from_doc(self.document)
        except ValueError as error:
            raise AirflowTimetableInvalid(str(error)) from None

    @property
    def summary(self) -> str:
        return self._pure.summary

    @property
    def description(self) -> str:  # type: ignore[override]
        return self._pure.description

    @property
    def periodic(self) -> bool:  # type: ignore[override]
        return self._pure.periodic

    @property
    def can_be_scheduled(self) -> bool:  # type: ignore[override]
        return self._pure.can_be_scheduled

    def to_doc(self) -> dict[str, Any]:
        return self.document if type(self).__module__.startswith("scheduler_app.") else super().to_doc()

    def next_dagrun_info(
        self, *, last_automated_data_interval: DataInterval | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        from scheduler_app.timetables import DataInterval as Interval
        from scheduler_app.timetables import Restriction

        last = last_automated_data_interval
        info = self._pure.next_info(
            None if last is None else Interval(last.start, last.end),
            Restriction(restriction.earliest, restriction.latest, restriction.catchup, timezone.utcnow()),
        )
        if info is None:
            return None
        interval = info.interval
        return DagRunInfo(
            timezone.coerce_datetime(info.run_after),
            interval and DataInterval(timezone.coerce_datetime(interval.start), timezone.coerce_datetime(interval.end)),
        )

    def infer_manual_data_interval(self, *, run_after: Any) -> DataInterval:
        found = self._pure.infer_manual(run_after)
        if found is None:
            return DataInterval.exact(run_after)
        return DataInterval(timezone.coerce_datetime(found.start), timezone.coerce_datetime(found.end))


#: documents without arguments: read when somebody asks, since most files have only these
_CANNOT_BE_WRONG = frozenset({"null", "once", "continuous", "asset"})


def duration_doc(value: Any) -> Any:
    """A timedelta or relativedelta as the document spells it. Raises AirflowTimetableInvalid."""
    if isinstance(value, dt.timedelta):
        return value.total_seconds()
    parts = ("years", "months", "days", "leapdays", "hours", "minutes", "seconds", "microseconds")
    if all(hasattr(value, part) for part in parts):
        return {"relativedelta": {part: getattr(value, part) for part in parts if getattr(value, part)}}
    raise AirflowTimetableInvalid(f"A duration is a timedelta or a relativedelta, not {value!r}.")


def _zone(value: Any) -> str:
    return value if isinstance(value, str) else timezone.name_of(value)


def _cron_doc(kind: str, timezone_: Any, interval: Any, run_immediately: Any, **keys: Any) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": kind, **keys, "timezone": _zone(timezone_)}
    if interval:
        document["interval"] = duration_doc(interval)
    if isinstance(run_immediately, dt.timedelta):
        document["run_immediately"] = duration_doc(run_immediately)
    elif run_immediately:
        document["run_immediately"] = True
    return document


class NullTimetable(Documented):
    """No runs by time."""

    def __init__(self) -> None:
        self._accept({"kind": "null"})


class OnceTimetable(Documented):
    """One run, ever."""

    def __init__(self) -> None:
        self._accept({"kind": "once"})


class ContinuousTimetable(Documented):
    """The next run begins when the last one ended. The DAG may have one active run at most."""

    active_runs_limit = 1

    def __init__(self) -> None:
        self._accept({"kind": "continuous"})


class CronTriggerTimetable(Documented):
    """A run at each tick of a cron expression."""

    def __init__(
        self,
        cron: str,
        *,
        timezone: Any = "UTC",
        interval: Any = dt.timedelta(),
        run_immediately: bool | dt.timedelta = False,
    ) -> None:
        self._accept(_cron_doc("cron_trigger", timezone, interval, run_immediately, expression=cron))


class MultipleCronTriggerTimetable(Documented):
    """A run at each tick of any of several cron expressions."""

    def __init__(
        self,
        *crons: str,
        timezone: Any = "UTC",
        interval: Any = dt.timedelta(),
        run_immediately: bool | dt.timedelta = False,
    ) -> None:
        if not crons:
            raise ValueError("MultipleCronTriggerTimetable needs one cron expression or more.")
        self._accept(_cron_doc("multi_cron_trigger", timezone, interval, run_immediately, expressions=list(crons)))


class CronDataIntervalTimetable(Documented):
    """A run after each interval between two ticks."""

    def __init__(self, cron: str, timezone: Any = "UTC") -> None:
        self._accept({"kind": "cron_interval", "expression": cron, "timezone": _zone(timezone)})


class DeltaTriggerTimetable(Documented):
    """A run every so often."""

    def __init__(self, delta: Any, *, interval: Any = dt.timedelta()) -> None:
        document = {"kind": "delta_trigger", "delta": duration_doc(delta)}
        if interval:
            document["interval"] = duration_doc(interval)
        self._accept(document)


class DeltaDataIntervalTimetable(Documented):
    """A run after each interval of one length."""

    def __init__(self, delta: Any) -> None:
        self._accept({"kind": "delta_interval", "delta": duration_doc(delta)})


class EventsTimetable(Documented):
    """A run at each of the given times."""

    def __init__(
        self,
        event_dates: Collection[dt.datetime],
        restrict_to_events: bool = False,
        presorted: bool = False,
        description: str | None = None,
    ) -> None:
        dates = [timezone.convert_to_utc(date).isoformat() for date in event_dates]
        document: dict[str, Any] = {"kind": "events", "event_dates": dates}
        if restrict_to_events:
            document["restrict_to_events"] = True
        if description:
            document["description"] = description
        self._accept(document)


def as_condition(assets: Any) -> BaseAsset:
    """An asset expression; a list means all of them."""
    if isinstance(assets, BaseAsset):
        return assets
    return AssetAll(*assets)


class AssetTriggeredTimetable(Documented):
    """A run when an asset expression is satisfied."""

    def __init__(self, assets: Any) -> None:
        self.asset_condition = as_condition(assets)
        self._accept({"kind": "asset", "condition": self.asset_condition.to_condition()})


class AssetOrTimeSchedule(Documented):
    """Runs by time, and runs when an asset expression is satisfied."""

    def __init__(self, *, timetable: Timetable, assets: Any) -> None:
        self.timetable = timetable
        self.asset_condition = as_condition(assets)
        self._accept(
            {"kind": "asset_or_time", "condition": self.asset_condition.to_condition(), "timetable": timetable.to_doc()}
        )


class DatasetOrTimeSchedule(AssetOrTimeSchedule):
    """The same, with Airflow 2's argument name."""

    def __init__(self, *, timetable: Timetable, datasets: Any) -> None:
        super().__init__(timetable=timetable, assets=datasets)
