"""``partitioned``: a run for each partition key whose upstream partitions have arrived (``engine/partitions.py``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from scheduler_app.engine import partitions
from scheduler_app.engine.assets import AssetKey, satisfied
from scheduler_app.engine.partitions import PartitionMapper
from scheduler_app.engine.timetable import DataInterval, Restriction, RunInfo, Timetable


class PartitionedTimetable(Timetable):
    summary = "Partitioned Asset"
    description = "Waits for partitions of assets"
    periodic = False

    def __init__(self, doc: dict[str, Any]) -> None:
        self.partition_condition = doc["condition"]
        self._mappers = [(leaf, partitions.from_doc(mapper)) for leaf, mapper in doc.get("mappers", ())]
        self._default: PartitionMapper = partitions.from_doc(doc.get("default_mapper") or {"class": "IdentityMapper"})

    def next_info(self, last: DataInterval | None, restriction: Restriction) -> RunInfo | None:
        return None

    def infer_manual(self, run_after: datetime) -> DataInterval | None:
        return DataInterval.exact(run_after)

    def mapper_of(self, asset: AssetKey) -> PartitionMapper:
        """The mapper of the first of the configured assets or references that means this one."""
        return next((mapper for leaf, mapper in self._mappers if satisfied(leaf, {asset})), self._default)

    def keys_of(self, asset: AssetKey, partition_key: str) -> list[str]:
        """The partitions of this DAG that an event of an upstream partition belongs to. ValueError: none can be."""
        return partitions.downstream_keys(self.mapper_of(asset), partition_key)

    def is_ready(
        self, key: str, received: Mapping[AssetKey, Collection[str]], aliases: Mapping[str, Collection[AssetKey]]
    ) -> bool:
        """Whether what was received (upstream keys by asset) is enough for one partition."""
        arrived = {
            asset for asset, keys in received.items() if partitions.has_arrived(self.mapper_of(asset), key, keys)
        }
        return satisfied(self.partition_condition, arrived, aliases)
