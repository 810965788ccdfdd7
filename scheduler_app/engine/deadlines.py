"""When a run or a task is late: the instants, from facts. Who is told is not decided here.

A deadline in a DAG's document is ``{"reference": R, "interval": seconds, "name": text, "callback": …}`` with R one of
``"logical_date"``, ``"queued_at"``, ``"run_after"``, ``{"fixed": instant}`` or ``{"average_runtime": {"max_runs": n,
"min_runs": n}}`` (counted from ``queued_at``; the average of the last ``max_runs`` runs, none when there were fewer
than ``min_runs``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple


class RunTimes(NamedTuple):
    """The instants of a run that deadlines count from."""

    run_after: datetime
    logical_date: datetime | None = None
    data_interval_end: datetime | None = None
    queued_at: datetime | None = None


def deadline_at(deadline: Mapping[str, Any], run: RunTimes, runtimes: Sequence[float] = ()) -> datetime | None:
    """When a deadline passes for a run; None when the run has not what it counts from.

    ``runtimes``: durations in seconds of earlier successful runs, latest first; read by ``average_runtime`` only.
    ValueError for an unknown reference.
    """
    reference = deadline["reference"]
    interval = timedelta(seconds=deadline["interval"])
    start: datetime | None
    if isinstance(reference, str):
        if reference not in ("logical_date", "queued_at", "run_after"):
            raise ValueError(f"Unknown deadline reference {reference!r}: use logical_date, queued_at or run_after.")
        start = getattr(run, reference)
    elif "fixed" in reference:
        start = datetime.fromisoformat(reference["fixed"])
    elif "average_runtime" in reference:
        average = _average(reference["average_runtime"], runtimes)
        start = None if average is None or run.queued_at is None else run.queued_at + timedelta(seconds=average)
    else:
        raise ValueError(f"Unknown deadline reference {sorted(reference)}: use fixed or average_runtime.")
    return None if start is None else start + interval


def sla_at(sla: float, run: RunTimes) -> datetime:
    """When a task's ``sla`` (seconds) is missed, counted from the end of the data interval, else from ``run_after``."""
    return (run.data_interval_end or run.run_after) + timedelta(seconds=sla)


def run_timeout_at(dagrun_timeout: float | None, started_at: datetime | None) -> datetime | None:
    """When a run has been running for too long; None = never, or it has not started."""
    if dagrun_timeout is None or started_at is None:
        return None
    return started_at + timedelta(seconds=dagrun_timeout)


def _average(rule: Mapping[str, Any], runtimes: Sequence[float]) -> float | None:
    most = rule.get("max_runs", 10)
    least = rule.get("min_runs", most)
    recent = runtimes[:most]
    return sum(recent) / len(recent) if recent and len(recent) >= least else None
