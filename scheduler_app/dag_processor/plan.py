"""Which files are parsed now, and in which order. Plain values in, a list out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from .scan import Stamp

#: Share of one process's time that re-parsing unchanged files may take.
REPARSE_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Known:
    """What was stored of a file when it was parsed last."""

    #: of the file itself and of each module that it imports below the DAG folder; None: was not there
    stamp: Mapping[str, Stamp | None] = field(default_factory=dict)
    parsed_at: datetime | None = None
    duration_seconds: float = 0.0
    requested_at: datetime | None = None
    has_error: bool = False
    #: one of its DAGs has a timetable class of its author's
    has_own_class: bool = False
    #: the first moment at which a planned schedule of the file runs short of slots
    refresh_at: datetime | None = None


def due(
    candidates: Collection[str],
    stamps: Mapping[str, Stamp],
    known: Mapping[str, Known],
    now: datetime,
    reparse_seconds: float,
    *,
    folder_changed: bool = False,
) -> list[str]:
    """The files to parse: those that a person asked for, then changed ones (newest change first), then old ones.

    `folder_changed`: some file of the folder is another one than at the last look, so a broken file gets another try
    (the module that it missed may be there now).
    `reparse_seconds` 0 never parses an unchanged file again; otherwise the time is stretched so that this costs at most
    :data:`REPARSE_SHARE` of a process.
    """
    wait = reparse_interval(known.values(), reparse_seconds)
    requested, changed, old = [], [], []
    for path in candidates:
        fact = known.get(path)
        if fact is not None and fact.requested_at is not None:
            requested.append(path)
        elif fact is None or fact.parsed_at is None or is_changed(fact, stamps) or (fact.has_error and folder_changed):
            changed.append(path)
        elif _is_old(fact, now, wait):
            old.append(path)
    requested.sort(key=lambda path: (known[path].requested_at, path))
    changed.sort(key=lambda path: (-stamps[path][0], path))
    old.sort(key=lambda path: (known[path].parsed_at, path))
    return requested + changed + old


def is_changed(fact: Known, stamps: Mapping[str, Stamp]) -> bool:
    """Whether the file, or a module that it imports, is another one than when it was parsed."""
    return any(stamps.get(path) != stamp for path, stamp in fact.stamp.items()) or not fact.stamp


def reparse_interval(known: Collection[Known], reparse_seconds: float) -> timedelta | None:
    """How old the parse of an unchanged file may get; None: any age."""
    if reparse_seconds <= 0:
        return None
    all_files = sum(fact.duration_seconds for fact in known)
    return timedelta(seconds=max(reparse_seconds, all_files / REPARSE_SHARE))


def _is_old(fact: Known, now: datetime, wait: timedelta | None) -> bool:
    if fact.refresh_at is not None and fact.refresh_at <= now:
        return True
    return wait is not None and fact.parsed_at is not None and fact.parsed_at + wait <= now
