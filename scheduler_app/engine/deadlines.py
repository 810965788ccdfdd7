"""When a run or a task is late: the instants, from facts. Who is told is not decided here.

A deadline in a DAG's document is ``{"reference": R, "interval": seconds, "callback": {"path", "kwargs", "sync"},
"name"}`` with R one of ``{"kind": "dagrun_logical_date"}``, ``{"kind": "dagrun_queued_at"}``, ``{"kind":
"fixed_datetime", "at": instant}`` or ``{"kind": "average_runtime", "max_runs": n, "min_runs": n}`` (from ``queued_at``
on, the average of the last ``max_runs`` runs; none when there were fewer than ``min_runs``).
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
    start = _reference_at(reference["kind"], reference, run, runtimes)
    return None if start is None else start + timedelta(seconds=deadline["interval"])


def _reference_at(kind: str, details: Mapping[str, Any], run: RunTimes, runtimes: Sequence[float]) -> datetime | None:
    if kind == "dagrun_logical_date":
        return run.logical_date
    if kind == "dagrun_queued_at":
        return run.queued_at
    if kind == "fixed_datetime":
        return datetime.fromisoformat(details["at"])
    if kind == "average_runtime":
        average = _average(details, runtimes)
        return None if average is None or run.queued_at is None else run.queued_at + timedelta(seconds=average)
    known = "dagrun_logical_date, dagrun_queued_at, fixed_datetime or average_runtime"
    raise ValueError(f"Unknown deadline reference {kind!r}: use {known}.")


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
