"""The DAG processor without its process: looks at folders, has files parsed, stores what comes back.

Each method does one bounded step and is called from the loop in ``process.py``; tests call the same steps. An idle
step is one statement, a scan is a stat for each file.
"""

from __future__ import annotations

import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from scheduler_app import metrics
from scheduler_app.conf import Conf
from scheduler_app.models import DagFile, db
from scheduler_app.models.lease import LeaseLost

from . import inventory, plan
from .bundle import Bundle
from .manifest import Manifests
from .plan import Known
from .scan import DagFileFilter, FolderUnreadableError, Scan, Stamp, scan
from .schedule import defines_own_class, refresh_at
from .store import Parsed, Stored, store

log = logging.getLogger(__name__)

#: A file is gone when so many looks in a row did not find it.
MISSED_SCANS = 2
#: A run whose file could not say its data interval waits so long until it is asked again.
_TRY_AGAIN = timedelta(seconds=60)


class Parse(Protocol):
    """One parsed file, as ``supervisor.parsing`` gives it."""

    path: str
    folder: str
    document: dict[str, Any] | None


class Parser(Protocol):
    """What parses files in children: ``supervisor.parsing.ParsePool``, or a fake."""

    @property
    def pending(self) -> int: ...

    def submit(self, path: str, folder: str, **facts: Any) -> None: ...

    def poll(self, timeout_seconds: float) -> Iterable[Parse]: ...


@dataclass(slots=True)
class _Job:
    """A file on its way through a child, and its stamps from before."""

    bundle: Bundle
    path: str
    stamps: dict[str, Stamp]
    bundle_version: str | None
    source_sha256: str
    requested_at: datetime | None


@dataclass(slots=True)
class Folder:
    """What is known of one owned bundle."""

    bundle: Bundle
    known: dict[str, Known] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)
    last: Scan | None = None
    version: str | None = None
    #: files changed that wait for a version
    is_behind: bool = False
    #: files that may define, since another one is gone, a DAG that was refused to them
    asked: set[str] = field(default_factory=set)
    #: files to parse, most urgent first
    queue: OrderedDict[str, None] = field(default_factory=OrderedDict)


class Processor:
    def __init__(self, conf: Conf, parser: Parser, guard: Callable[[], None] = lambda: None) -> None:
        self.conf, self._parser, self._guard = conf, parser, guard
        self._filter = DagFileFilter(trust_all=not conf.dag_discovery_safe_mode)
        self._manifests = Manifests(conf.bundle_suffixes)
        self.folders: dict[str, Folder] = {}
        self._flying: dict[tuple[str, str], _Job] = {}
        self._said: set[str] = set()
        #: runs that wait for their data interval → when their file was last asked
        self._tried: dict[str, datetime] = {}

    # ── ownership ────────────────────────────────────────────────────────────────────────────────────────────────────

    def own(self, bundles: Iterable[Bundle]) -> None:
        """From now on these bundles are ours, and no others."""
        wanted = {bundle.name: bundle for bundle in bundles}
        for name in self.folders.keys() - wanted.keys():
            log.warning("Bundle %s belongs to another processor now", name)
            del self.folders[name]
        for name, bundle in wanted.items():
            if name not in self.folders:
                log.info("Watching %s (bundle %s)", bundle.folder, name)
                known, missed = inventory.load(bundle)
                self.folders[name] = Folder(bundle, known, missed)

    # ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def look(self, now: datetime, *, every_file: bool = False) -> int:
        """One look at every owned folder; how many files are to be parsed because of it."""
        return sum(self._look(folder, now, every_file) for folder in list(self.folders.values()))

    def _look(self, folder: Folder, now: datetime, every_file: bool) -> int:
        bundle = folder.bundle
        try:
            found = scan(bundle.folder, self.conf.dag_ignore_file_syntax)
        except FolderUnreadableError as error:
            self._say_once(f"{error} Its DAGs stay as they are.")
            return 0
        for text in found.warnings:
            self._say_once(f"Bundle {bundle.name}: {text}")
        changed = folder.last is None or folder.last.files != found.files
        if changed or folder.is_behind:
            version = self._manifests.version(bundle, found.files, now)
            folder.is_behind = not self._manifests.is_current(bundle, found.files)
            if version != folder.version:
                folder.version = version
                inventory.point_to(bundle, version, self._guard)
        folder.last = found
        paths = [path for path in self._filter.dag_files(bundle.folder, found) if bundle.covers(path)]
        self._count_missing(folder, set(paths), found)
        if every_file:
            due = paths
        else:
            due = plan.due(paths, found.files, folder.known, now, self.conf.reparse_seconds, folder_changed=changed)
        flying = {job.path for job in self._flying.values() if job.bundle == bundle}
        asked = sorted(folder.asked & found.files.keys())
        folder.queue = OrderedDict.fromkeys(path for path in (*asked, *due) if path not in flying)
        return len(folder.queue)

    def _count_missing(self, folder: Folder, paths: set[str], found: Scan) -> None:
        back = [path for path in paths if folder.missed.pop(path, 0)]
        missing = [path for path in folder.known if path not in paths and found.knows(path)]
        for path in missing:
            folder.missed[path] = folder.missed.get(path, 0) + 1
        inventory.count_missed(folder.bundle, back, missing, self._guard)
        for path in missing:
            if folder.missed[path] >= MISSED_SCANS:
                gone = inventory.remove_file(folder.bundle, path, self._guard)
                log.info("File %s is gone, and with it: %s", path, ", ".join(gone.dag_ids) or "no DAG")
                del folder.known[path], folder.missed[path]
                self._ask_for(gone.retry)

    def take_requests(self, now: datetime) -> int:
        """Files that a person asked to have parsed, or that were missed by name: they go first. One statement."""
        if not self.folders:
            return 0
        wanted = DagFile.objects.filter(bundle_name__in=list(self.folders), parse_requested_at__isnull=False)
        count = 0
        for name, path, at in wanted.order_by("-parse_requested_at").values_list(
            "bundle_name", "relative_path", "parse_requested_at"
        ):
            folder = self.folders[name]
            if folder.last is None or path not in folder.last.files or not folder.bundle.covers(path):
                continue
            folder.known[path] = replace(folder.known.get(path, Known()), requested_at=at)
            folder.queue[path] = None
            folder.queue.move_to_end(path, last=False)
            count += 1
        return count

    def take_questions(self, now: datetime) -> int:
        """Files whose timetable class must say the data interval of a manual run, or the slots of a backfill: they go
        first."""
        if not self.folders:
            return 0
        count = 0
        pending = inventory.files_with_questions(self.folders)
        waiting = {run for run, _, _ in pending}
        self._tried = {run: at for run, at in self._tried.items() if run in waiting}
        for run, name, path in pending:
            if run in self._tried and now - self._tried[run] < _TRY_AGAIN:
                continue
            self._tried[run] = now
            folder = self.folders[name]
            if path in folder.known and folder.bundle.covers(path):
                folder.asked.add(path)
                folder.queue[path] = None
                folder.queue.move_to_end(path, last=False)
                count += 1
        return count

    def _ask_for(self, paths: Iterable[str]) -> None:
        for folder in self.folders.values():
            for path in paths:
                if path in folder.known:
                    folder.asked.add(path)
                    folder.queue[path] = None

    # ── parsing ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def busy(self) -> bool:
        """Whether files are being parsed or wait for it."""
        return bool(self._flying) or any(folder.queue for folder in self.folders.values())

    def submit(self) -> int:
        """Gives the parser as many files as it can use; the rest waits here, where more urgent ones overtake it."""
        count = 0
        for folder in self.folders.values():
            while folder.queue and self._parser.pending < 2 * self.conf.parse_processes:
                path, _ = folder.queue.popitem(last=False)
                folder.asked.discard(path)
                if folder.last is None or path not in folder.last.files:
                    continue
                self._submit(folder, path, folder.last.files)
                count += 1
        return count

    def _submit(self, folder: Folder, path: str, files: dict[str, Stamp]) -> None:
        bundle = folder.bundle
        file, root = os.fspath(bundle.folder / path), os.fspath(bundle.folder)
        if (file, root) in self._flying:
            return
        stamps = dict(files)
        try:
            # The file may have changed since the scan: what is parsed is what lies there now.
            stat = os.stat(file)
            stamps[path] = (stat.st_mtime_ns, stat.st_size)
        except OSError:
            return  # the next scan sees it missing
        sha256 = self._manifests.sha256(bundle, path)
        known = folder.known.get(path, Known())
        self._flying[file, root] = _Job(bundle, path, stamps, folder.version, sha256, known.requested_at)
        # A file that is new has no slots to go on from; one without such a class needs none.
        self._parser.submit(file, root, **(inventory.planning_facts(bundle, path) if known.has_own_class else {}))

    def collect(self, timeout_seconds: float, now: Callable[[], datetime]) -> list[Stored]:
        """Waits at most so long for parsed files and stores those that are done, each by itself."""
        stored: list[Stored] = []
        for parse in self._parser.poll(timeout_seconds):
            job = self._flying.pop((parse.path, parse.folder), None)
            if job is None or job.bundle.name not in self.folders or parse.document is None:
                continue
            result = self._store(job, parse.document, now())
            if result is not None:
                stored.append(result)
        return stored

    def _store(self, job: _Job, document: dict[str, Any], now: datetime) -> Stored | None:
        folder = self.folders[job.bundle.name]
        before = folder.known.get(job.path, Known())
        stamp = _stamp(job, document, before)
        parsed = Parsed(
            bundle=job.bundle,
            path=job.path,
            document=document,
            stamp=stamp,
            source_sha256=job.source_sha256,
            bundle_version=job.bundle_version,
            source_changed=dict(before.stamp) != stamp,
            requested_at=job.requested_at,
        )
        result = self._store_safely(parsed, now)
        if result is None:
            return None
        folder.known[job.path] = Known(
            stamp=stamp,
            parsed_at=now,
            duration_seconds=document.get("seconds") or 0.0,
            has_error=result.error is not None,
            has_own_class=before.has_own_class if result.error else defines_own_class(document),
            refresh_at=refresh_at(document, now),
        )
        self._ask_for(result.retry)
        self._report(job, document, result)
        return result

    def _store_safely(self, parsed: Parsed, now: datetime) -> Stored | None:
        """What was stored: the parse, or that it cannot be stored, as the file's own error. None: try again later."""
        try:
            return store(parsed, now, self.conf, self._guard)
        except (LeaseLost, db.InterfaceError):
            raise
        except Exception as error:
            if db.is_transient(error):
                log.warning("The database refused what %s says; it is parsed again: %s", parsed.path, error)
                db.close()
                return None
            log.exception("What %s says cannot be stored", parsed.path)
            why = str(error).strip().partition("\n")[0]
            text = f"What this file defines cannot be stored: {type(error).__name__}: {why}"
            failed = {
                **parsed.document,
                "dags": [],
                "dag_errors": {},
                "intervals": {},
                "ranges": {},
                "import_error": text,
            }
            return store(replace(parsed, document=failed), now, self.conf, self._guard)

    def _report(self, job: _Job, document: dict[str, Any], result: Stored) -> None:
        seconds = document.get("seconds") or 0.0
        metrics.PARSE_SECONDS.observe(seconds)
        metrics.FILES_PARSED.labels("error" if result.error is not None else "success").inc()
        if result.error is not None:
            last_line = result.error.strip().splitlines()[-1]
            log.warning("%s has an error: %s (import errors in the dashboard show all of it)", job.path, last_line)
        for dag_id in result.new_versions:
            log.info("New version of %s from %s (%.2f s)", dag_id, job.path, seconds)
        for dag_id in result.stale:
            log.info("%s no longer defines %s", job.path, dag_id)

    def _say_once(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log.warning(text)


def _stamp(job: _Job, document: dict[str, Any], before: Known) -> dict[str, Stamp | None]:
    """The stamps by which a later scan sees that the file, or something that it imports, is another one."""
    root = job.bundle.folder
    modules = {_relative(root, module) for module in document.get("modules") or ()}
    if document.get("import_error"):
        # A module that broke the import may not be reported: keep looking at those of the last good parse.
        modules |= before.stamp.keys()
    modules.discard("")
    return {path: job.stamps.get(path) for path in sorted({job.path, *modules})}


def _relative(root: Path, module: str) -> str:
    """The path below the DAG folder, empty for one that is not."""
    if not os.path.isabs(module):
        return module
    for top, file in ((os.fspath(root), module), (os.path.realpath(root), os.path.realpath(module))):
        if file.startswith(os.path.join(top, "")):
            return os.path.relpath(file, top).replace(os.sep, "/")
    return ""
