"""Deletes what nobody needs any more: old logs, versions of the DAG folder, callbacks, audit rows, rows of processes.

A bounded batch each time; when a table still has more, the next batch comes soon, else an hour later. The rows of runs
and task instances are never deleted here.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.apps import apps
from django.conf import settings

from scheduler_app.conf import Conf
from scheduler_app.log_store import stores
from scheduler_app.log_store.pieces import parse
from scheduler_app.log_store.stores import RemoteStore
from scheduler_app.models import AssetEvent, db, locks

log = logging.getLogger(__name__)

_BATCH = 500
_SOON_SECONDS = 5.0
_REST_SECONDS = 3600.0
_SESSIONS_IN_DATABASE = frozenset({f"django.contrib.sessions.backends.{name}" for name in ("db", "cached_db")})

#: Every table, and how its rows go again; a test holds that none is forgotten.
HOW_ROWS_GO = {
    # by age
    "LogPiece": "log_days",
    "Callback": "callback_days",
    "Audit": "audit_days",
    "Job": "job_days",
    "Deadline": "deadline_days once it is missed, at once when it was in time, with its run",
    "AssetEvent": "asset_event_days once every DAG has taken it",
    "BundleVersion": "bundle_days once nothing refers to it",
    "SourceBlob": "with the last BundleVersion and DagVersion that hold it",
    "TaskState": "task_state_days, or what its task says; with its run",
    # with something else
    "DagRun": "when a person deletes it, or its DAG",
    **dict.fromkeys(("TaskInstance", "TaskInstanceHistory", "RenderedFields", "XCom"), "with its run"),
    "DagModel": "when a person deletes it",
    **dict.fromkeys(("DagVersion", "DagTag", "DagWarning", "Backfill", "Favourite"), "with its DAG"),
    "BackfillSlot": "with its backfill",
    **dict.fromkeys(("DagFile", "ParseError"), "when its file is gone"),
    **dict.fromkeys(("Wake", "DagWake"), "when it is looked at"),
    "Trigger": "when it fired, or its task waits no longer",
    **dict.fromkeys(("AssetQueuedEvent", "PartitionEvent"), "when a run takes it"),
    "AssetUse": "when the DAG no longer uses it",
    "LimitUse": "when what it counts has ended",
    # as many as people and files name
    **dict.fromkeys(
        ("Asset", "AssetAlias", "AssetState", "Pool", "Limit", "Variable", "Connection"), "it does not grow"
    ),
}

_OLD_PIECES = """
DELETE FROM scheduler_log_piece WHERE id IN (
    SELECT id FROM scheduler_log_piece WHERE created_at < %(before)s ORDER BY created_at LIMIT %(limit)s)
"""
_OLD_CALLBACKS = """
DELETE FROM scheduler_callback WHERE id IN (
    SELECT id FROM scheduler_callback WHERE state IN ('success', 'failed') AND finished_at < %(before)s
    ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
"""
_OLD_AUDIT = """
DELETE FROM scheduler_audit WHERE id IN (
    SELECT id FROM scheduler_audit WHERE "when" < %(before)s ORDER BY "when" LIMIT %(limit)s)
"""
_OLD_JOBS = """
DELETE FROM scheduler_job WHERE id IN (
    SELECT id FROM scheduler_job WHERE state <> 'running' AND end_date < %(before)s
    ORDER BY id LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
"""
_OLD_DEADLINES = """
DELETE FROM scheduler_deadline WHERE id IN (
    SELECT id FROM scheduler_deadline WHERE missed_at < %(before)s ORDER BY missed_at, id LIMIT %(limit)s)
"""
#: One that a DAG has still to take stays, however old it is.
_OLD_ASSET_EVENTS = """
SELECT e.id FROM scheduler_asset_event e WHERE e.timestamp < %(before)s
  AND NOT EXISTS (SELECT 1 FROM scheduler_asset_queued_event q WHERE q.event_id = e.id)
  AND NOT EXISTS (SELECT 1 FROM scheduler_partition_event p WHERE p.event_id = e.id)
ORDER BY e.id LIMIT %(limit)s
"""
#: A version is kept for its DAGs, for what still runs or ended lately, for triggers, and as the last of its bundle.
_OLD_VERSIONS = """
DELETE FROM scheduler_bundle_version v WHERE v.id IN (
    SELECT id FROM scheduler_bundle_version WHERE created_at < %(before)s ORDER BY created_at, id LIMIT %(limit)s)
AND NOT EXISTS (SELECT 1 FROM scheduler_dag d WHERE d.bundle_version = v.version)
AND NOT EXISTS (SELECT 1 FROM scheduler_trigger t WHERE t.bundle_version = v.version)
AND NOT EXISTS (SELECT 1 FROM scheduler_dag_run r WHERE r.bundle_version = v.version
                AND (r.end_date IS NULL OR r.end_date >= %(before)s))
AND EXISTS (SELECT 1 FROM scheduler_bundle_version n WHERE n.bundle_name = v.bundle_name
            AND (n.created_at, n.id) > (v.created_at, v.id))
"""
_LOOSE_BLOBS = """
DELETE FROM scheduler_source_blob b WHERE b.sha256 IN (
    SELECT sha256 FROM scheduler_source_blob
    EXCEPT SELECT held.value FROM scheduler_bundle_version, jsonb_each_text(manifest) AS held
    EXCEPT SELECT source_sha256 FROM scheduler_dag_version
    LIMIT %(limit)s)
"""


class Retention:
    """:meth:`step` is called often, and does something when it is time. One of each database: the caller sees to it."""

    def __init__(self, values: Conf, monotonic: Callable[[], float]) -> None:
        self._conf, self._monotonic = values, monotonic
        self._tasks: dict[str, tuple[int, Callable[[datetime], int]]] = {
            "pieces of logs": (values.log_days, lambda before: _delete(_OLD_PIECES, before)),
            "callbacks": (values.callback_days, lambda before: _delete(_OLD_CALLBACKS, before)),
            "audit rows": (values.audit_days, lambda before: _delete(_OLD_AUDIT, before)),
            "rows of processes": (values.job_days, lambda before: _delete(_OLD_JOBS, before)),
            "missed deadlines": (values.deadline_days, lambda before: _delete(_OLD_DEADLINES, before)),
            "asset events": (values.asset_event_days, old_asset_events),
            "sessions": (1, old_sessions),
            "versions of DAG folders": (values.bundle_days, old_versions),
            "objects of the log store": (values.log_days, self._old_objects),
        }
        self._next = dict.fromkeys(self._tasks, monotonic())
        self._objects: Iterator[tuple[str, datetime | None]] | None = None

    def step(self, now: datetime) -> int:
        """The first task that is due; how many rows or objects are gone."""
        for name, (days, delete) in self._tasks.items():
            if days and self._monotonic() >= self._next[name]:
                self._next[name] = self._monotonic() + _REST_SECONDS
                gone = delete(now - timedelta(days=days))
                if gone:
                    log.info("%d old %s are deleted", gone, name)
                if gone >= _BATCH or (self._objects is not None and name == "objects of the log store"):
                    self._next[name] = self._monotonic() + _SOON_SECONDS
                return gone
        return 0

    def _old_objects(self, before: datetime) -> int:
        """One part of a walk over the remote store, which goes on at the next call."""
        if self._objects is None:
            store = stores.of_readers(self._conf)
            if not isinstance(store, RemoteStore):
                return 0
            self._store, self._objects = store, store.walk()
        seen = list(itertools.islice(self._objects, _BATCH))
        if len(seen) < _BATCH:
            self._objects = None
        old = [path for path, written in seen if written is not None and written < before and _is_piece(path)]
        for path in old:
            self._store.fs.rm_file(path)
        return len(old)


def _is_piece(path: str) -> bool:
    """Whatever else lies in the bucket is not ours."""
    return parse(path.rpartition("/")[2]) is not None


def old_versions(before: datetime) -> int:
    """Versions that nothing refers to, and the blobs that no version holds any more."""
    with db.atomic():
        locks.keep_blobs()
        gone = _delete(_OLD_VERSIONS, before)
        if gone:
            db.execute(_LOOSE_BLOBS, {"limit": 10 * _BATCH})
    return gone


def old_asset_events(before: datetime) -> int:
    """With what says which runs they set off."""
    with db.atomic():
        ids = [row[0] for row in db.fetch(_OLD_ASSET_EVENTS, {"before": before, "limit": _BATCH})]
        AssetEvent.objects.filter(pk__in=ids).delete()
    return len(ids)


def old_sessions(before: datetime) -> int:
    """Logins that ran out a day ago; other stores of sessions forget by themselves."""
    if settings.SESSION_ENGINE not in _SESSIONS_IN_DATABASE or not apps.is_installed("django.contrib.sessions"):
        return 0
    from django.contrib.sessions.models import Session

    keys = Session.objects.filter(expire_date__lt=before).values_list("pk", flat=True)[:_BATCH]
    return Session.objects.filter(pk__in=list(keys)).delete()[0]


def _delete(sql: str, before: datetime) -> int:
    return db.execute(sql, {"before": before, "limit": _BATCH})
