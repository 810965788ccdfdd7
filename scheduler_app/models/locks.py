"""The locks that more than one module must agree on, and their order (I9): DagModel → DagRun → TaskInstance → Pool.

Within a table, rows are locked by key. Advisory keys are derived from the database's own identity of our schema, so two
installations in one database do not block each other (S-61).
"""

from __future__ import annotations

from . import db

BUNDLES = "SELECT pg_advisory_xact_lock('scheduler_job'::regclass::oid::int, 2)"
#: Asks whether this transaction alone may admit now; goes ``first`` before what is counted (``db.fetch``), in one trip.
#: The answer is kept for the rest of the transaction, see :data:`ADMITS`.
ADMISSION = """
SELECT set_config('scheduler.admits',
                  pg_try_advisory_xact_lock('scheduler_task_instance'::regclass::oid::int, 1)::text, true)
"""
#: Holds in whatever follows :data:`ADMISSION` when this transaction may admit.
ADMITS = "current_setting('scheduler.admits', true) = 'true'"
BLOBS = "SELECT pg_advisory_xact_lock('scheduler_source_blob'::regclass::oid::int, 3)"
_NO_ADMISSION = "SELECT pg_advisory_xact_lock('scheduler_task_instance'::regclass::oid::int, 1)"


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
