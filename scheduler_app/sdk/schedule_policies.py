"""What a DAG says of its schedule besides when: arguments of ours, beyond Airflow's (docs/dag-files.md)."""

from __future__ import annotations

import copy
import datetime as dt
from typing import Any, NamedTuple

from scheduler_app.sdk.nearest import did_you_mean
from scheduler_app.sdk.timetables import Documented, Timetable

_CHOICES: dict[str, tuple[str, ...]] = {
    "misfire_policy": ("skip", "latest", "all"),
    "overlap_policy": ("queue", "skip", "cancel_oldest"),
    "run_state": ("leaves", "any_failed"),
    "dst_gap": ("same_offset", "next_valid", "skip"),
    "dst_overlap": ("first", "second", "both"),
}
_CRON_KINDS = ("cron_trigger", "cron_interval", "multi_cron_trigger")


class Policies(NamedTuple):
    """The checked arguments; None where the DAG says nothing."""

    misfire_policy: str | None = None
    misfire_limit: int | None = None
    overlap_policy: str | None = None
    schedule_jitter: dt.timedelta | None = None
    run_state: str | None = None
    dst_gap: str | None = None
    dst_overlap: str | None = None


def read(dag_id: str, policies: Policies) -> Policies:
    """The same, checked. Raises ValueError or TypeError, naming the DAG, the argument and what it may be."""
    for name, choices in _CHOICES.items():
        value = getattr(policies, name)
        if value is not None and value not in choices:
            hint = did_you_mean(str(value), choices)
            raise ValueError(f"{name} of DAG {dag_id!r} is one of {', '.join(choices)}, not {value!r}.{hint}")
    limit, jitter = policies.misfire_limit, policies.schedule_jitter
    if limit is not None and (policies.misfire_policy != "all" or isinstance(limit, bool) or limit < 1):
        raise ValueError(f"misfire_limit of DAG {dag_id!r} is a number from 1 on, beside misfire_policy='all'.")
    if jitter is not None and (not isinstance(jitter, dt.timedelta) or jitter < dt.timedelta(0)):
        raise TypeError(f"schedule_jitter of DAG {dag_id!r} is a timedelta that is not negative, not {jitter!r}.")
    return policies


def on_the_clock(timetable: Timetable, dag_id: str, policies: Policies) -> Timetable:
    """The timetable with the DAG's rules for hours that the clock skips or repeats.

    Raises ValueError for a schedule that has no time of day to move.
    """
    rules: dict[str, Any] = {"gap": policies.dst_gap, "overlap": policies.dst_overlap}
    rules = {name: value for name, value in rules.items() if value is not None}
    if not rules:
        return timetable
    document = timetable.document if isinstance(timetable, Documented) else {}
    inner = document.get("timetable") if document.get("kind") == "asset_or_time" else document
    if (inner or {}).get("kind") not in _CRON_KINDS:
        raise ValueError(f"dst_gap and dst_overlap of DAG {dag_id!r} need a schedule by a cron expression.")
    assert inner is not None
    made = copy.copy(timetable)
    made.__dict__.pop("_pure", None)
    made.document = {**document, "timetable": {**inner, **rules}} if inner is not document else {**document, **rules}  # type: ignore[attr-defined]
    return made
