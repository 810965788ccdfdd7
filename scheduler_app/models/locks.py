"""The locks that more than one module must agree on, and their order (I9): DagModel → DagRun → TaskInstance → Pool.

Within a table, rows are locked by key. Advisory keys are derived from the database's own identity of our schema, so two
installations in one database do not block each other (S-61).
"""

from __future__ import annotations

from . import db

BUNDLES = "SELECT pg_advisory_xact_lock('scheduler_job'::regclass::oid::int, 2)"
ADMISSION = "SELECT pg_try_advisory_xact_lock('scheduler_task_instance'::regclass::oid::int, 1)"
BLOBS = "SELECT pg_advisory_xact_lock('scheduler_source_blob'::regclass::oid::int, 3)"
_NO_ADMISSION = "SELECT pg_advisory_xact_lock('scheduler_task_instance'::regclass::oid::int, 1)"


def try_admission() -> bool:
    """Whether this transaction alone may admit now. A statement of its own, before anything is counted."""
    return bool(db.fetch(ADMISSION, keep_plan=True)[0][0])


def keep_out_admission() -> None:
    """Waits for the admission of this moment, and lets none begin before this transaction ends. First of all locks."""
    db.execute(_NO_ADMISSION)


def claim_bundles() -> None:
    """Waits until this transaction alone may say which processor owns which bundle."""
    db.execute(BUNDLES)


def keep_blobs() -> None:
    """Waits until this transaction alone stores versions of DAG folders, or deletes blobs that no version holds: a blob
    that is there already is not stored again, and must not go meanwhile."""
    db.execute(BLOBS)
