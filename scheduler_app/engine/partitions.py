"""Partition mappers and windows: how the partition keys of one asset become those of another.

Authors use these classes (``sdk/partitions.py`` hands them out); the scheduler rebuilds them from their documents, so
that no code of an author is asked when an event arrives.
"""

from __future__ import annotations

import calendar
import datetime as dt
import enum
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

KEY_FORMAT = "%Y-%m-%dT%H:%M:%S"


def _instant(key: str, form: str) -> dt.datetime:
    """The wall time that a key says; a key has no zone. ValueError for one of another form."""
    return dt.datetime.strptime(key, form)  # noqa: DTZ007


class Described:
    """Things with arguments that can be written down: class path and arguments."""

    def serialize(self) -> dict[str, Any]:
        return {}

    @classmethod
    def deserialize(cls, data: dict[str, Any]) -> Any:
        return cls(**data)

    def to_doc(self) -> dict[str, Any]:
        """``{"class": name, …arguments}``; the name has a dot for a class that is not one of this module."""
        kind = type(self)
        name = kind.__qualname__ if kind.__module__ == __name__ else f"{kind.__module__}.{kind.__qualname__}"
        return {"class": name, **self.serialize()}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_doc() == other.to_doc()

    def __hash__(self) -> int:
        return hash(repr(self.to_doc()))


class PartitionMapper(Described):
    """Override :meth:`to_downstream`: the downstream key (or keys) of an upstream key."""

    def __init__(self, *, max_downstream_keys: int | None = None) -> None:
        if max_downstream_keys is not None and max_downstream_keys < 1:
            raise ValueError("max_downstream_keys is 1 or more.")
        self.max_downstream_keys = max_downstream_keys

    def to_downstream(self, key: str) -> str | Iterable[str]:
        raise NotImplementedError(f"{type(self).__name__} has no to_downstream(self, key): define it.")

    def to_doc(self) -> dict[str, Any]:
        limit = {} if self.max_downstream_keys is None else {"max_downstream_keys": self.max_downstream_keys}
        return {**super().to_doc(), **limit}


class IdentityMapper(PartitionMapper):
    """The same key."""

    def to_downstream(self, key: str) -> str:
        return key


class AllowedKeyMapper(PartitionMapper):
    """The same key, if it is one of a fixed set. Raises ValueError for others."""

    def __init__(self, allowed_keys: Sequence[str], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.allowed_keys = list(allowed_keys)

    def to_downstream(self, key: str) -> str:
        if key not in self.allowed_keys:
            raise ValueError(f"The partition key {key!r} is none of {self.allowed_keys}.")
        return key

    def serialize(self) -> dict[str, Any]:
        return {"allowed_keys": self.allowed_keys}


class FixedKeyMapper(PartitionMapper):
    """One key for all."""

    def __init__(self, key: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.key = key

    def to_downstream(self, key: str) -> str:
        return self.key

    def serialize(self) -> dict[str, Any]:
        return {"key": self.key}


class ChainMapper(PartitionMapper):
    """One mapper after another."""

    def __init__(self, *mappers: PartitionMapper, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.mappers = list(mappers)

    def to_downstream(self, key: str) -> str:
        for mapper in self.mappers:
            key = str(mapper.to_downstream(key))
        return key

    def serialize(self) -> dict[str, Any]:
        return {"mappers": [mapper.to_doc() for mapper in self.mappers]}


class ProductMapper(PartitionMapper):
    """A mapper for each segment of a composite key (``region|time``)."""

    def __init__(self, *mappers: PartitionMapper, delimiter: str = "|", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if len(mappers) < 2:
            raise ValueError("ProductMapper needs two mappers or more.")
        self.mappers, self.delimiter = list(mappers), delimiter

    def to_downstream(self, key: str) -> str:
        segments = key.split(self.delimiter)
        if len(segments) != len(self.mappers):
            raise ValueError(f"The key {key!r} has {len(segments)} segments, {len(self.mappers)} are expected.")
        return self.delimiter.join(
            str(mapper.to_downstream(part)) for mapper, part in zip(self.mappers, segments, strict=True)
        )

    def serialize(self) -> dict[str, Any]:
        return {"mappers": [mapper.to_doc() for mapper in self.mappers], "delimiter": self.delimiter}


class TemporalMapper(PartitionMapper):
    """A timestamp key becomes that of the period which it lies in."""

    output_format_default: ClassVar[str]

    def __init__(
        self, *, input_format: str = KEY_FORMAT, output_format: str | None = None, timezone: str = "UTC", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.input_format, self.output_format = input_format, output_format or self.output_format_default
        self.timezone = timezone

    def start_of_period(self, at: dt.datetime) -> dt.datetime:
        raise NotImplementedError

    def to_downstream(self, key: str) -> str:
        at = _instant(key, self.input_format)
        return self.start_of_period(at).strftime(self.output_format)

    def serialize(self) -> dict[str, Any]:
        return {"input_format": self.input_format, "output_format": self.output_format, "timezone": self.timezone}


class StartOfHourMapper(TemporalMapper):
    output_format_default = "%Y-%m-%dT%H"

    def start_of_period(self, at: dt.datetime) -> dt.datetime:
        return at.replace(minute=0, second=0, microsecond=0)


class StartOfDayMapper(TemporalMapper):
    output_format_default = "%Y-%m-%d"

    def start_of_period(self, at: dt.datetime) -> dt.datetime:
        return at.replace(hour=0, minute=0, second=0, microsecond=0)


class StartOfWeekMapper(StartOfDayMapper):
    def start_of_period(self, at: dt.datetime) -> dt.datetime:
        return super().start_of_period(at) - dt.timedelta(days=at.weekday())


class StartOfMonthMapper(TemporalMapper):
    output_format_default = "%Y-%m"

    def start_of_period(self, at: dt.datetime) -> dt.datetime:
        return at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


class StartOfQuarterMapper(StartOfMonthMapper):
    def start_of_period(self, at: dt.datetime) -> dt.datetime:
        return super().start_of_period(at).replace(month=(at.month - 1) // 3 * 3 + 1)


class StartOfYearMapper(TemporalMapper):
    output_format_default = "%Y"

    def start_of_period(self, at: dt.datetime) -> dt.datetime:
        return at.replace(month=1, day=1, hour=0, minute=0, second=0, microsecond=0)


class Window(Described):
    """The upstream periods that make one downstream period. Override :meth:`to_upstream`."""

    class Direction(enum.Enum):
        """Whether the window lies after or before its key."""

        FORWARD = "forward"
        BACKWARD = "backward"

    expected_decoded_type: ClassVar[type] = dt.datetime

    def __init__(self, *, direction: Window.Direction = Direction.FORWARD) -> None:
        self.direction = direction

    def to_upstream(self, period_start: Any) -> Iterable[Any]:
        raise NotImplementedError(f"{type(self).__name__} has no to_upstream(): define it.")

    def serialize(self) -> dict[str, Any]:
        return {"direction": self.direction.value}

    def _steps(self, start: dt.datetime, step: dt.timedelta, count: int) -> list[dt.datetime]:
        first = start if self.direction is Window.Direction.FORWARD else start - step * (count - 1)
        return [first + step * index for index in range(count)]


class HourWindow(Window):
    """Sixty minutes."""

    def to_upstream(self, period_start: dt.datetime) -> Iterable[dt.datetime]:
        return self._steps(period_start, dt.timedelta(minutes=1), 60)


class DayWindow(Window):
    """Twenty-four hours."""

    def to_upstream(self, period_start: dt.datetime) -> Iterable[dt.datetime]:
        return self._steps(period_start, dt.timedelta(hours=1), 24)


class WeekWindow(Window):
    """Seven days."""

    def to_upstream(self, period_start: dt.datetime) -> Iterable[dt.datetime]:
        return self._steps(period_start, dt.timedelta(days=1), 7)


class MonthWindow(Window):
    """The days of a calendar month."""

    def to_upstream(self, period_start: dt.datetime) -> Iterable[dt.datetime]:
        days = calendar.monthrange(period_start.year, period_start.month)[1]
        return self._steps(period_start, dt.timedelta(days=1), days)


class QuarterWindow(Window):
    """Three months."""

    months = 3

    def to_upstream(self, period_start: dt.datetime) -> Iterable[dt.datetime]:
        sign = 1 if self.direction is Window.Direction.FORWARD else -1
        first = period_start.year * 12 + period_start.month - 1
        places = [first + sign * index for index in range(self.months)]
        return [period_start.replace(year=place // 12, month=place % 12 + 1) for place in sorted(places)]


class YearWindow(QuarterWindow):
    """Twelve months."""

    months = 12


class SegmentWindow(Window):
    """A fixed set of keys."""

    expected_decoded_type: ClassVar[type] = str

    def __init__(self, segments: Sequence[str], *, direction: Window.Direction = Window.Direction.FORWARD) -> None:
        super().__init__(direction=direction)
        if not segments:
            raise ValueError("SegmentWindow needs one segment or more.")
        self.segments = list(dict.fromkeys(segments))

    def to_upstream(self, period_start: Any) -> Iterable[str]:
        return self.segments

    def serialize(self) -> dict[str, Any]:
        return {"segments": self.segments}


class WaitPolicy(Described):
    """How much of a window must have arrived."""


class WaitForAll(WaitPolicy):
    """All of it."""


class MinimumCount(WaitPolicy):
    """At least ``count``; a negative count: all but so many."""

    def __init__(self, count: int) -> None:
        if count == 0:
            raise ValueError("MinimumCount is positive, or negative for 'all but so many'; not 0.")
        self.count = count

    def serialize(self) -> dict[str, Any]:
        return {"count": self.count}


class RollupMapper(PartitionMapper):
    """Many upstream keys → one downstream key, once ``wait_policy`` says that enough arrived."""

    def __init__(
        self, *, upstream_mapper: PartitionMapper, window: Window, wait_policy: WaitPolicy | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.upstream_mapper, self.window, self.wait_policy = upstream_mapper, window, wait_policy or WaitForAll()

    def to_downstream(self, key: str) -> str | Iterable[str]:
        return self.upstream_mapper.to_downstream(key)

    def serialize(self) -> dict[str, Any]:
        return {
            "upstream_mapper": self.upstream_mapper.to_doc(),
            "window": self.window.to_doc(),
            "wait_policy": self.wait_policy.to_doc(),
        }


class FanOutMapper(PartitionMapper):
    """One upstream key → a window of downstream keys."""

    def __init__(
        self,
        *,
        upstream_mapper: PartitionMapper,
        window: Window,
        downstream_mapper: PartitionMapper | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if downstream_mapper is None and isinstance(window, SegmentWindow):
            raise ValueError("FanOutMapper over a SegmentWindow needs a downstream_mapper.")
        self.upstream_mapper, self.window = upstream_mapper, window
        self.downstream_mapper = downstream_mapper or StartOfDayMapper()

    def to_downstream(self, key: str) -> Iterable[str]:
        period = str(self.upstream_mapper.to_downstream(key))
        if isinstance(self.upstream_mapper, TemporalMapper):
            start: Any = _instant(period, self.upstream_mapper.output_format)
            return [
                str(self.downstream_mapper.to_downstream(at.strftime(KEY_FORMAT)))
                for at in self.window.to_upstream(start)
            ]
        return [str(self.downstream_mapper.to_downstream(item)) for item in self.window.to_upstream(period)]

    def serialize(self) -> dict[str, Any]:
        return {
            "upstream_mapper": self.upstream_mapper.to_doc(),
            "window": self.window.to_doc(),
            "downstream_mapper": self.downstream_mapper.to_doc(),
        }


#: The classes that the scheduler can rebuild; an author's own live in children only.
KNOWN: dict[str, type[Described]] = {
    kind.__qualname__: kind
    for kind in (
        *(IdentityMapper, AllowedKeyMapper, FixedKeyMapper, ChainMapper, ProductMapper, RollupMapper, FanOutMapper),
        *(StartOfHourMapper, StartOfDayMapper, StartOfWeekMapper),
        *(StartOfMonthMapper, StartOfQuarterMapper, StartOfYearMapper),
        *(HourWindow, DayWindow, WeekWindow, MonthWindow, QuarterWindow, YearWindow, SegmentWindow),
        *(WaitForAll, MinimumCount),
    )
}


def is_known(doc: Any) -> bool:
    """Whether a document, with all that is in it, is of classes of this module."""
    if isinstance(doc, dict):
        return ("class" not in doc or doc["class"] in KNOWN) and all(map(is_known, doc.values()))
    return all(map(is_known, doc)) if isinstance(doc, list) else True


def from_doc(doc: dict[str, Any]) -> Any:
    """The mapper, window or wait policy of a document. ValueError names a class that is an author's own."""
    if doc["class"] not in KNOWN:
        raise ValueError(f"{doc['class']} is a class of a DAG file: the scheduler cannot map partition keys by it.")
    arguments = {name: _argument(name, value) for name, value in doc.items() if name != "class"}
    mappers = arguments.pop("mappers", ())
    return KNOWN[doc["class"]](*mappers, **arguments)


def _argument(name: str, value: Any) -> Any:
    if name == "direction":
        return Window.Direction(value)
    if isinstance(value, dict):
        return from_doc(value)
    return [from_doc(item) for item in value] if name == "mappers" else value


def downstream_keys(mapper: PartitionMapper, key: str) -> list[str]:
    """The downstream keys of an upstream key, each once. ValueError: the key does not fit, or there are too many."""
    found = mapper.to_downstream(key)
    keys = [found] if isinstance(found, str) else list(dict.fromkeys(found))
    if mapper.max_downstream_keys is not None and len(keys) > mapper.max_downstream_keys:
        raise ValueError(f"The key {key!r} has {len(keys)} downstream keys; {mapper.max_downstream_keys} are allowed.")
    return keys


def has_arrived(mapper: PartitionMapper, key: str, received: Iterable[str]) -> bool:
    """Whether the upstream keys that were received are enough for the downstream key. ValueError: it cannot be said."""
    found = set(received)
    if not isinstance(mapper, RollupMapper):
        return bool(found)
    wanted = _window_keys(mapper, key)
    there = len(found.intersection(wanted))
    if isinstance(mapper.wait_policy, MinimumCount):
        count = mapper.wait_policy.count
        return there >= (count if count > 0 else max(len(wanted) + count, 1))
    return there == len(wanted)


def _window_keys(mapper: RollupMapper, key: str) -> set[str]:
    """The upstream keys of a window, as the upstream writes them."""
    window, inner = mapper.window, mapper.upstream_mapper
    if isinstance(window, SegmentWindow):
        return set(window.to_upstream(key))
    if not isinstance(inner, TemporalMapper):
        raise ValueError(
            f"A {type(window).__name__} counts times, but {type(inner).__name__} gives no time: roll up by a "
            "StartOf…Mapper, or use a SegmentWindow."
        )
    start = _instant(key, inner.output_format)
    return {at.strftime(inner.input_format) for at in window.to_upstream(start)}
