"""Versions of a DAG by the canonical hash of its document: a hundred parses of the same DAG are one version."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Max, Q

from scheduler_app.engine.dag import from_doc
from scheduler_app.engine.dag_hash import dag_hash, differing, moving_fields
from scheduler_app.engine.graph import Graph
from scheduler_app.models import DagModel, DagRun, DagVersion, Wake

if TYPE_CHECKING:
    from .store import Parsed

Json = Any

#: Airflow's name for a DAG whose definition differs from parse to parse.
VARYING = "runtime varying value"
_FIELDS_NAMED = 5


class UnusableError(ValueError):
    """A document that parses but that the scheduler could not work with; the text goes to the DAG's author."""


@dataclass(frozen=True, slots=True)
class Outcome:
    is_new: bool
    #: fields that changed although the source did not; empty: it is steady; None: this parse says nothing about it
    varying: tuple[str, ...] | None


def store(row: DagModel, document: Json, parsed: Parsed, now: datetime) -> Outcome:
    """Makes `document` the latest version of the DAG, unless it is already. The row must be locked."""
    digest = dag_hash(document)
    latest = row.latest_version
    if latest is not None and latest.dag_hash == digest:
        return Outcome(is_new=False, varying=() if parsed.source_changed else None)
    _check(document)
    varying: tuple[str, ...] = ()
    number = None
    if latest is not None:
        moving = moving_fields(latest.document, document, seconds_between=(now - latest.created_at).total_seconds())
        if moving:
            return Outcome(is_new=False, varying=tuple(moving))
    if latest is not None and not parsed.source_changed:
        varying = tuple(differing(latest.document, document)[:_FIELDS_NAMED])
        if not _is_used(row, latest):
            # A definition that varies by itself makes no more versions than it makes runs.
            number = latest.version_number
            latest.delete()
    if number is None:
        number = (row.versions.aggregate(last=Max("version_number"))["last"] or 0) + 1
    row.latest_version = DagVersion.objects.create(
        dag=row,
        version_number=number,
        dag_hash=digest,
        document=document,
        bundle_name=parsed.bundle.name,
        bundle_version=parsed.bundle_version,
        source_sha256=parsed.source_sha256,
        created_at=now,
    )
    row.save(update_fields=["latest_version"])
    running = DagRun.objects.filter(dag=row, state="running").values_list("pk", flat=True)
    Wake.objects.add(running, "new_version", now)
    return Outcome(is_new=True, varying=varying)


def _check(document: Json) -> None:
    """The scheduler compiles every version: one that it cannot is the author's error now, not an error in each tick."""
    try:
        Graph(from_doc(document))
    except (ValueError, TypeError, KeyError) as error:
        raise UnusableError(f"DAG {document['dag_id']!r} cannot be scheduled: {error}") from error


def _is_used(row: DagModel, version: DagVersion) -> bool:
    """Whether a run may have seen the version: some run was open at a time since it exists."""
    seen = Q(state__in=["queued", "running"]) | Q(end_date__gte=version.created_at) | Q(dag_version=version)
    return DagRun.objects.filter(seen, dag=row).exists()


def varying_text(fields: tuple[str, ...]) -> str:
    return (
        f"The definition changed although the file did not: {', '.join(fields)}. A value that is computed when the file"
        " is read (a time of day, a random number, the order of a set) makes a new version at each parse: fix it."
    )
