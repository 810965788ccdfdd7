"""Deletes what nobody needs any more: old pieces of logs, versions of the DAG folder, callbacks, audit rows.

A bounded batch each time; when a table still has more, the next batch comes soon, else an hour later. The rows of runs
and task instances are never deleted here.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from scheduler_app.conf import Conf
from scheduler_app.log_store import stores
from scheduler_app.log_store.pieces import parse
from scheduler_app.log_store.stores import RemoteStore
from scheduler_app.models import db, locks

log = logging.getLogger(__name__)

_BATCH = 500
_SOON_SECONDS = 5.0
_REST_SECONDS = 3600.0

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


def _delete(sql: str, before: datetime) -> int:
    return db.execute(sql, {"before": before, "limit": _BATCH})
