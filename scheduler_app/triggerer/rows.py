"""The rows of triggers: claimed under a lease, and ended by what their tasks get. All statements of the triggerer."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from psycopg2.extras import Json

from scheduler_app.models import Trigger, db, transitions
from scheduler_app.runner.claims import Claim, describe_tasks

from . import endings

#: The method name by which a task hears that its trigger failed, and what it is told (as in Airflow).
FAIL_METHOD = "__fail__"
FAILURE = "Trigger failure"

_CLAIM = """
UPDATE scheduler_trigger SET triggerer_id = %(job)s, claimed_until = %(until)s
WHERE id IN (SELECT id FROM scheduler_trigger t
             WHERE claimed_until IS NULL OR claimed_until <= %(now)s
                OR EXISTS (SELECT 1 FROM scheduler_job j WHERE j.id = t.triggerer_id AND j.state <> 'running')
             ORDER BY id LIMIT %(limit)s FOR UPDATE OF t SKIP LOCKED)
RETURNING id
"""
_RENEW = """
UPDATE scheduler_trigger SET claimed_until = %(until)s
WHERE id IN (SELECT id FROM scheduler_trigger WHERE id = ANY(%(ids)s::bigint[]) AND triggerer_id = %(job)s
             ORDER BY id FOR NO KEY UPDATE)
RETURNING id
"""
#: A deferred row says which trigger it waits for; everything else has moved on (marked, cleared, timed out).
_WAITING = """
SELECT ti.trigger_id, ti.id, ti.fence, ti.next_kwargs FROM scheduler_task_instance ti
WHERE ti.state = 'deferred' AND ti.trigger_id = ANY(%s::bigint[]) ORDER BY ti.id
"""
#: All rows of a batch are locked at once and by key: moving them verb by verb could lock them in another order (I9).
_LOCK_WAITING = f"{_WAITING} FOR NO KEY UPDATE OF ti"
_DROP_UNWANTED = """
DELETE FROM scheduler_trigger WHERE id IN (
    SELECT t.id FROM scheduler_trigger t WHERE NOT EXISTS (
        SELECT 1 FROM scheduler_task_instance ti WHERE ti.state = 'deferred' AND ti.trigger_id = t.id)
    ORDER BY t.id LIMIT %s FOR UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A trigger that is ours to run, and the task instance that waits for it."""

    trigger_id: int
    classpath: str
    kwargs: Any
    bundle_name: str
    bundle_version: str | None
    claim: Claim


@dataclass(frozen=True, slots=True)
class Result:
    """How a trigger ended: with its event (encoded by ``wire``), with an error, or by ending its task itself."""

    trigger_id: int
    payload: Any = None
    error: dict[str, Any] | None = None
    #: ``{"state", "xcoms"}``: the task ends so, without another attempt; then ``claim`` describes the task
    end: dict[str, Any] | None = None
    claim: Claim | None = None


def claim(job_id: int, now: datetime, lease_seconds: float, limit: int) -> list[int]:
    """Takes triggers that nobody holds, oldest first; their ids."""
    if limit <= 0:
        return []
    until = now + timedelta(seconds=lease_seconds)
    rows = db.fetch(_CLAIM, {"job": job_id, "until": until, "now": now, "limit": limit})
    return sorted(row[0] for row in rows)


def describe(ids: Sequence[int]) -> list[Waiting]:
    """Triggers with the tasks that wait for them; one that no task waits for is left to :func:`drop_unwanted`."""
    if not ids:
        return []
    triggers = {row.pk: row for row in Trigger.objects.filter(pk__in=ids)}
    task_of = {ti_id: trigger_id for trigger_id, ti_id, _, _ in db.fetch(_WAITING, [list(ids)])}
    found = []
    for described in describe_tasks(list(task_of)):
        row = triggers[task_of[described.ti_id]]
        found.append(Waiting(row.pk, row.classpath, row.kwargs, row.bundle_name, row.bundle_version, described))
    return sorted(found, key=lambda waiting: waiting.trigger_id)


def renew(job_id: int, ids: Collection[int], now: datetime, lease_seconds: float) -> set[int]:
    """Says that we still run these, and returns those that are still ours; the others are gone or were taken over."""
    if not ids:
        return set()
    until = now + timedelta(seconds=lease_seconds)
    return {row[0] for row in db.fetch(_RENEW, {"job": job_id, "until": until, "ids": sorted(ids)})}


def drop_unwanted(limit: int = 1000) -> int:
    """Deletes triggers that no deferred task waits for any more."""
    return db.execute(_DROP_UNWANTED, [limit])


def release(job_id: int) -> int:
    """Lets others take our triggers at once: this triggerer stops."""
    return Trigger.objects.filter(triggerer_id=job_id).update(triggerer_id=None, claimed_until=None)


def resume(results: Sequence[Result], now: datetime) -> list[int]:
    """Lets the waiting tasks go on with what their triggers gave, in one transaction; the task instances that moved.

    A task that went on by itself meanwhile (its deferral timed out, somebody marked it) is left alone: what was stored
    first wins (BC-83).
    """
    by_trigger = {result.trigger_id: result for result in results}
    with db.atomic():
        rows = db.fetch(_LOCK_WAITING, [sorted(by_trigger)])
        moved: list[int] = []
        going_on = [row for row in rows if by_trigger[row[0]].end is None]
        for failed in (False, True):
            group = [row for row in going_on if (by_trigger[row[0]].error is not None) == failed]
            moved += _resume(group, by_trigger, now, failed=failed)
        for trigger_id, ti_id, fence, _ in rows:
            result = by_trigger[trigger_id]
            if result.end is not None and result.claim is not None:
                moved += endings.end(result.claim, ti_id, fence, result.end, now)
        Trigger.objects.filter(pk__in=sorted(by_trigger)).delete()
        if moved:
            db.notify()
    return moved


def _resume(
    rows: Sequence[tuple[Any, ...]], by_trigger: dict[int, Result], now: datetime, *, failed: bool
) -> list[int]:
    if not rows:
        return []
    columns: dict[str, Any] = {}
    if failed:
        columns["next_method"] = FAIL_METHOD
        columns["next_kwargs"] = [Json(_failure(by_trigger[row[0]].error or {})) for row in rows]
    else:
        columns["next_kwargs"] = [Json(_with_event(row[3], by_trigger[row[0]].payload)) for row in rows]
    return transitions.tasks("resume", [row[1] for row in rows], now, fences=[row[2] for row in rows], **columns)


def _failure(error: dict[str, Any]) -> dict[str, Any]:
    return {"error": FAILURE, "traceback": error.get("traceback") or [f"{error.get('type')}: {error.get('message')}"]}


def _with_event(next_kwargs: Any, payload: Any) -> dict[str, Any]:
    kwargs = json.loads(next_kwargs) if isinstance(next_kwargs, str) else next_kwargs
    return {**(kwargs or {}), "event": payload}
