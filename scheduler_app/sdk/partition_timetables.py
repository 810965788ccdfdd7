"""Schedules of partitioned assets."""

from __future__ import annotations

import datetime as dt
import warnings
from typing import Any

from scheduler_app.engine.partitions import IdentityMapper, PartitionMapper, is_known
from scheduler_app.sdk.timetables import CronTriggerTimetable, Timetable, as_condition, duration_doc


class CronPartitionTimetable(CronTriggerTimetable):
    """A run, and a partition, at each tick."""

    partitioned = True

    def __init__(
        self,
        cron: str,
        *,
        timezone: Any = "UTC",
        run_offset: int | dt.timedelta | None = None,
        run_immediately: bool | dt.timedelta = False,
        key_format: str = "%Y-%m-%dT%H:%M:%S",
    ) -> None:
        super().__init__(cron, timezone=timezone, run_immediately=run_immediately)
        self.run_offset, self.key_format = run_offset, key_format
        partition: dict[str, Any] = {"format": key_format}
        if isinstance(run_offset, dt.timedelta):
            partition["offset"] = {"delta": duration_doc(run_offset)}
        elif run_offset:
            partition["offset"] = run_offset
        self._accept({**self.document, "partition": partition})


class PartitionedAtRuntime(Timetable):
    """Runs are started by hand; the task says which partition it wrote."""

    description = "The partition is decided while the task runs"
    periodic = False
    can_be_scheduled = False
    partitioned_at_runtime = True


class PartitionedAssetTimetable(Timetable):
    """A run for each partition key whose upstream partitions have arrived."""

    description = "Waits for partitions of assets"
    periodic = False
    partitioned = True

    def __init__(
        self,
        *,
        assets: Any,
        partition_mapper_config: dict[Any, PartitionMapper] | None = None,
        default_partition_mapper: PartitionMapper | None = None,
    ) -> None:
        self.asset_condition = as_condition(assets)
        self.partition_mapper_config = dict(partition_mapper_config or {})
        self.default_partition_mapper = default_partition_mapper or IdentityMapper()

    @property
    def summary(self) -> str:
        return "Partitioned Asset"

    def to_doc(self) -> dict[str, Any]:
        document = {
            "kind": "partitioned",
            "condition": self.asset_condition.to_condition(),
            "mappers": [
                [asset.to_condition(), mapper.to_doc()] for asset, mapper in self.partition_mapper_config.items()
            ],
            "default_mapper": self.default_partition_mapper.to_doc(),
        }
        if not is_known([document["default_mapper"], *(mapper for _, mapper in document["mappers"])]):
            warnings.warn(
                "A partition mapper or window of your own cannot be asked by the scheduler: this DAG starts no run by "
                "itself. Use the built-in ones, or trigger it.",
                stacklevel=2,
            )
            return {**super().to_doc(), **document, "kind": "custom", "can_be_scheduled": False}
        return document
