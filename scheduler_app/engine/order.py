"""In which order ready task instances are asked whether they get a slot (I4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol, TypeVar


class Waiting(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def dag_id(self) -> str: ...
    @property
    def priority_weight(self) -> int: ...
    @property
    def scheduled_when(self) -> datetime: ...


W = TypeVar("W", bound=Waiting)


def urgency(row: Waiting, ageing_seconds: float) -> int:
    """Priority and, with ageing, one more for each such time of waiting.

    It is counted from the epoch: what waits grows alike, so who comes before whom does not change while time passes.
    """
    if not ageing_seconds:
        return row.priority_weight
    return row.priority_weight - math.floor(row.scheduled_when.timestamp() / ageing_seconds)


def fair_order(rows: Sequence[W], ageing_seconds: float = 0.0) -> list[W]:
    """Urgency first, then the rank within the row's DAG (so equal urgencies share fairly), then age, then id."""
    rank: Counter[tuple[int, str]] = Counter()
    keyed = []
    urgent = {row.id: urgency(row, ageing_seconds) for row in rows}
    for row in sorted(rows, key=lambda row: (-urgent[row.id], row.scheduled_when, row.id)):
        key = (urgent[row.id], row.dag_id)
        keyed.append(((-urgent[row.id], rank[key], row.scheduled_when, row.id), row))
        rank[key] += 1
    return [row for _, row in sorted(keyed, key=lambda pair: pair[0])]
