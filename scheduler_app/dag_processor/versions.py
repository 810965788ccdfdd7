"""Versions of a DAG by the canonical hash of its document: a hundred parses of the same DAG are one version."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.db.models import Max, Q

from scheduler_app.engine.dag import from_doc
from scheduler_app.engine.dag_hash import dag_hash
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
    if latest is not None and not parsed.source_changed:
        varying = tuple(itertools.islice(differences(latest.document, document), _FIELDS_NAMED))
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


def differences(old: Json, new: Json, path: str = "") -> Iterator[str]:
    """Where two documents differ: ``start_date``, ``tasks[load].retries``, ``tags`` …"""
    if old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif isinstance(old, list) and isinstance(new, list) and (by_id := _by_id(old, new)):
        before, after = by_id
        for key in sorted(before.keys() | after.keys()):
            yield from differences(before.get(key), after.get(key), f"{path}[{key}]")
    else:
        yield path


def _by_id(old: list[Json], new: list[Json]) -> tuple[dict[str, Json], dict[str, Json]] | None:
    """Tasks and groups by their id; None for any other list."""
    for key in ("task_id", "group_id"):
        if all(isinstance(item, dict) and key in item for item in (*old, *new)):
            return {str(item[key]): item for item in old}, {str(item[key]): item for item in new}
    return None


def varying_text(fields: tuple[str, ...]) -> str:
    return (
        f"The definition changed although the file did not: {', '.join(fields)}. A value that is computed when the file"
        " is read (a time of day, a random number, the order of a set) makes a new version at each parse; give a fixed value."
    )
