"""Tasks whose first step is a trigger (``start_from_trigger``): a new try begins deferred, without a hand-out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from psycopg2.extras import Json

from scheduler_app.engine.dag import Task
from scheduler_app.models import DagRun, Trigger, db, transitions
from scheduler_app.models.effect import NewTrigger
from scheduler_app.runner.claims import forget_xcoms


class Begin(NamedTuple):
    """A task instance that may begin, and its task, which has a ``start_trigger``."""

    ti_id: int
    run_id: int
    dag_id: str
    task: Task


def start(begins: Sequence[Begin], now: datetime) -> list[int]:
    """Stores the triggers and defers the task instances that may still begin; those that did."""
    if not begins:
        return []
    begins = sorted(begins)
    versions = dict(DagRun.objects.filter(pk__in={one.run_id for one in begins}).values_list("pk", "bundle_version"))
    how = [one.task.start_trigger for one in begins]
    # one whose row has moved on meanwhile leaves a trigger that nobody waits for: the triggerer drops those
    triggers = Trigger.objects.add(
        [
            NewTrigger(start["classpath"], start["kwargs"], one.dag_id, versions.get(one.run_id) or None)
            for one, start in zip(begins, how, strict=True)
        ],
        now,
    )
    moved = transitions.tasks(
        "start_deferred",
        [one.ti_id for one in begins],
        now,
        wake=False,
        trigger_id=triggers,
        trigger_timeout=[_until(start["timeout"], now) for start in how],
        next_method=[start["next_method"] for start in how],
        next_kwargs=[Json(start["next_kwargs"]) for start in how],
    )
    forget_xcoms(moved)
    db.notify()
    return moved


def _until(seconds: float | None, now: datetime) -> datetime | None:
    return None if seconds is None else now + timedelta(seconds=seconds)
