"""What one parse says, stored in one transaction: DAGs, versions, errors, warnings. An unchanged DAG costs two updates.

A file whose import failed changes none of its DAGs: their last good versions keep running, marked with
``has_import_errors``. A file with one broken DAG renews the others that it had, and brings no new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Q

from scheduler_app.conf import Conf
from scheduler_app.models import AssetUse, DagFile, DagModel, DagWarning, ParseError, db
from scheduler_app.runner.decide import storable

from . import assets, backfill_slots, definition, intervals, limits, versions
from .bundle import Bundle
from .scan import Stamp

Json = Any

#: Key, among the errors of a file by DAG id, of what the others lead to.
_NOT_LISTED = "~"


@dataclass(frozen=True, slots=True)
class Parsed:
    """One parse of one file, and what was known of the file before it began."""

    bundle: Bundle
    path: str
    #: the result document of a parse (docs/borders.md §5)
    document: Mapping[str, Json]
    #: of the file and the modules that it imported, as of before the parse
    stamp: Mapping[str, Stamp | None]
    source_sha256: str = ""
    bundle_version: str | None = None
    #: the file, or a module of it, is another one than at the parse before
    source_changed: bool = True
    #: the request that this parse answers; one that came while it ran stays open
    requested_at: datetime | None = None


@dataclass(slots=True)
class Stored:
    """What a store did; ``retry`` names files that may be free of a duplicate now."""

    dag_ids: tuple[str, ...] = ()
    new_versions: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    error: str | None = None
    retry: tuple[str, ...] = ()


@dataclass(slots=True)
class _Store:
    parsed: Parsed
    now: datetime
    conf: Conf
    documents: dict[str, Json] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)
    rows: dict[str, DagModel] = field(default_factory=dict)
    new_versions: list[str] = field(default_factory=list)
    retry: list[str] = field(default_factory=list)
    news: bool = False


def store(parsed: Parsed, now: datetime, conf: Conf, guard: Callable[[], None] = lambda: None) -> Stored:
    """Store one parse. `guard` raises inside the transaction when this process may no longer write."""
    work = _Store(parsed, now, conf)
    with db.atomic():
        guard()
        _read_document(work)
        _lock_rows(work)
        _refuse_duplicates(work)
        for dag_id in sorted(work.documents):
            _store_dag(work, dag_id)
        gone = _settle_the_rest(work)
        work.news |= intervals.settle(parsed.document.get("intervals") or {}, now) > 0
        work.news |= backfill_slots.settle(parsed.document.get("ranges") or {}, now) > 0
        error = _store_error(work)
        _store_file(work)
        if work.news or gone:
            db.notify()
    return Stored(tuple(work.documents), tuple(work.new_versions), gone, error, tuple(work.retry))


def _read_document(work: _Store) -> None:
    document = work.parsed.document
    work.errors = {dag_id: storable(text) for dag_id, text in (document.get("dag_errors") or {}).items()}
    if document.get("import_error"):
        work.errors[""] = storable(document["import_error"])
        return
    for dag in document.get("dags", ()):
        dag_id = dag["dag_id"]
        if dag_id in work.documents:
            work.errors[dag_id] = f"DAG {dag_id!r} is defined twice in this file: give one of them another dag_id."
        work.documents[dag_id] = dag
    for dag_id in work.errors:
        work.documents.pop(dag_id, None)


def _lock_rows(work: _Store) -> None:
    """The rows of every DAG that the file defines or defined, in key order; new DAGs get theirs here."""
    parsed = work.parsed
    of_file = Q(bundle_name=parsed.bundle.name, relative_fileloc=parsed.path)
    work.rows = _locked(of_file | Q(pk__in=list(work.documents)))
    missing = sorted(work.documents.keys() - work.rows.keys())
    if missing and work.errors:
        # As Airflow does: a file with an error brings nothing new; the DAGs that it had go on.
        work.errors[_NOT_LISTED] = f"Not listed until this file has no error: {', '.join(missing)}."
        for dag_id in missing:
            del work.documents[dag_id]
    elif missing:
        DagModel.objects.bulk_create(
            [definition.new_row(dag_id, parsed, work.documents[dag_id], work.now, work.conf) for dag_id in missing],
            ignore_conflicts=True,
        )
        work.rows |= _locked(Q(pk__in=missing))


def _locked(wanted: Q) -> dict[str, DagModel]:
    rows = DagModel.objects.filter(wanted).order_by("pk").select_related("latest_version")
    rows = rows.select_for_update(no_key=True, of=("self",)).defer("latest_version__document")
    return {row.pk: row for row in rows}


def _refuse_duplicates(work: _Store) -> None:
    """A DAG belongs to the file that defined it first, until that file is gone or no longer defines it."""
    parsed = work.parsed
    for dag_id in list(work.documents):
        row = work.rows[dag_id]
        if row.is_stale or (row.bundle_name, row.relative_fileloc) == (parsed.bundle.name, parsed.path):
            continue
        owner = DagFile.objects.filter(bundle_name=row.bundle_name, relative_path=row.relative_fileloc).first()
        if owner is None or (owner.missed_scans > 0 and not _was_refused(parsed, dag_id)):
            continue  # renamed: the old file is missing, and this one is new to the DAG
        del work.documents[dag_id]
        work.errors[dag_id] = duplicate_text(dag_id, row.bundle_name, row.relative_fileloc, parsed)


def _was_refused(parsed: Parsed, dag_id: str) -> bool:
    """This file asked for the DAG before and waits until the other one is gone, not only missing in one scan."""
    found = ParseError.objects.filter(bundle_name=parsed.bundle.name, filename=parsed.path)
    return found.filter(stack_trace__contains=_duplicate_start(dag_id)).exists()


def duplicate_text(dag_id: str, bundle_name: str, path: str, parsed: Parsed) -> str:
    return (
        f"{_duplicate_start(dag_id)} {path} (bundle {bundle_name}), so the one in {parsed.path}"
        f" (bundle {parsed.bundle.name}) is not used: give one of them another dag_id, or remove one of the files."
    )


def _duplicate_start(dag_id: str) -> str:
    return f"DAG {dag_id!r} is already defined in"


def _store_dag(work: _Store, dag_id: str) -> None:
    row, document, parsed = work.rows[dag_id], work.documents[dag_id], work.parsed
    try:
        version = versions.store(row, document, parsed, work.now)
    except versions.UnusableError as error:
        _refuse(work, row, str(error))
        return
    if version.is_new:
        work.new_versions.append(dag_id)
    is_renewed = version.is_new or row.is_stale
    changed = definition.update(row, document, parsed, work.now, work.conf)
    work.news = work.news or version.is_new or changed
    if is_renewed:
        definition.store_tags(row, document)
        assets.store_uses(row, document, work.now)
    _store_warnings(work, row, document, version.varying)


def _refuse(work: _Store, row: DagModel, error: str) -> None:
    """The DAG keeps its last good version; without one it is not listed at all."""
    del work.documents[row.pk]
    work.errors[row.pk] = error
    if row.latest_version_id is None:
        del work.rows[row.pk]
        row.delete()


def _store_warnings(work: _Store, row: DagModel, document: Json, varying: tuple[str, ...] | None) -> None:
    wanted = {
        (warning["type"], warning["message"])
        for warning in work.parsed.document.get("warnings", ())
        if warning.get("dag_id") == row.pk
    }
    wanted |= {("non-existent pool", text) for text in definition.missing_pools(document)}
    wanted |= {("limit", text) for text in limits.declare(row, document)}
    found = {(warning.warning_type, warning.message): warning for warning in row.warnings.all()}
    if varying:
        wanted.add((versions.VARYING, versions.varying_text(varying)))
    elif varying is None:
        # Nothing new was learned: what was said of the present source still holds.
        wanted |= {key for key in found if key[0] == versions.VARYING}
    gone = [warning.pk for key, warning in found.items() if key not in wanted]
    if gone:
        DagWarning.objects.filter(pk__in=gone).delete()
    DagWarning.objects.bulk_create(
        [
            DagWarning(dag=row, warning_type=kind, message=message, timestamp=work.now)
            for kind, message in sorted(wanted - found.keys())
        ],
        ignore_conflicts=True,
    )


def _settle_the_rest(work: _Store) -> tuple[str, ...]:
    """DAGs of this file that the parse did not give: broken ones keep their last version, others are gone."""
    parsed = work.parsed
    rest = [
        row
        for row in work.rows.values()
        if row.pk not in work.documents and (row.bundle_name, row.relative_fileloc) == (parsed.bundle.name, parsed.path)
    ]
    broken = [row.pk for row in rest if "" in work.errors or row.pk in work.errors]
    DagModel.objects.filter(pk__in=broken, has_import_errors=False).update(has_import_errors=True)
    gone = tuple(row.pk for row in rest if row.pk not in broken and not row.is_stale)
    make_stale(gone)
    work.retry = list(files_waiting_for(gone))
    return gone


def make_stale(dag_ids: tuple[str, ...]) -> None:
    """No file defines these DAGs any more: no new runs; their history stays. Their rows must be locked."""
    if dag_ids:
        DagModel.objects.filter(pk__in=dag_ids).update(is_stale=True)
        AssetUse.objects.filter(dag_id__in=dag_ids).delete()


def files_waiting_for(dag_ids: tuple[str, ...]) -> set[str]:
    """Files that were refused one of these DAGs as a duplicate; they are asked for again."""
    waiting: set[str] = set()
    for dag_id in dag_ids:
        found = ParseError.objects.filter(stack_trace__contains=_duplicate_start(dag_id))
        waiting |= set(found.values_list("filename", flat=True))
    return waiting


def _store_error(work: _Store) -> str | None:
    parsed = work.parsed
    where = {"bundle_name": parsed.bundle.name, "filename": parsed.path}
    causes = "\n\n".join(error.rstrip() for dag_id, error in sorted(work.errors.items()) if dag_id != _NOT_LISTED)
    text = f"{causes}\n\n{work.errors[_NOT_LISTED]}" if _NOT_LISTED in work.errors else causes
    if not text:
        ParseError.objects.filter(**where).delete()
        return None
    found = ParseError.objects.filter(**where).first()
    if found is None:
        ParseError.objects.create(**where, stack_trace=text, timestamp=work.now)
    elif found.stack_trace != text:
        found.stack_trace, found.timestamp = text, work.now
        found.save(update_fields=["stack_trace", "timestamp"])
    return causes


def _store_file(work: _Store) -> None:
    parsed = work.parsed
    DagFile.objects.bulk_create(
        [
            DagFile(
                bundle_name=parsed.bundle.name,
                relative_path=parsed.path,
                stamp={path: list(stamp) if stamp else None for path, stamp in parsed.stamp.items()},
                last_parsed_at=work.now,
                last_duration=parsed.document.get("seconds"),
                missed_scans=0,
                asked=parsed.document.get("asked", []),
            )
        ],
        update_conflicts=True,
        unique_fields=["bundle_name", "relative_path"],
        update_fields=["stamp", "last_parsed_at", "last_duration", "missed_scans", "asked"],
    )
    if parsed.requested_at is not None:
        row = DagFile.objects.filter(bundle_name=parsed.bundle.name, relative_path=parsed.path)
        row.filter(parse_requested_at__lte=parsed.requested_at).update(parse_requested_at=None)
