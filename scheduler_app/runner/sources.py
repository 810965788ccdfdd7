"""DAG files for a machine that has no DAG folder: a bundle's version, from the database, kept in a folder here.

``<folder>/<version>/…`` is the tree of one version, named by what it holds: it never changes, so a file that is there
is right. It is built beside its place and then renamed, so several workers may share the folder. Trees that nobody
asked for in a week are deleted when a new one is built.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from scheduler_app.models import BundleVersion, SourceBlob
from scheduler_app.supervisor.zygote import DagFile

log = logging.getLogger(__name__)

_KEPT_SECONDS = 7 * 86_400.0
#: How often the time of a tree's last use is written.
_TOUCH_SECONDS = 3_600.0
_BLOBS_A_STATEMENT = 100


class SourceMissing(OSError):
    """The database does not hold that version, or what it holds cannot be laid out as files."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a DAG stands in its bundle. ``pinned``: the version that its run began with; ``newest``: the DAG's now."""

    bundle_name: str
    path: str
    pinned: str
    newest: str

    def version(self, *, follow_newest: bool) -> str:
        """The version to run; empty when none was ever stored."""
        wanted = (self.newest, self.pinned) if follow_newest else (self.pinned, self.newest)
        return wanted[0] or wanted[1]


class Sources:
    """The trees below `folder`. `readable_by_all`: another system user runs the tasks. `wall` gives seconds."""

    def __init__(
        self,
        folder: Path,
        *,
        follow_newest: bool,
        readable_by_all: bool = False,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._folder, self._follow_newest, self._wall = folder, follow_newest, wall
        self._file_mode, self._folder_mode = (0o644, 0o755) if readable_by_all else (0o600, 0o700)
        #: trees that are known to be there, and when their use was last written
        self._used: dict[str, float] = {}

    def file(self, source: Source) -> DagFile:
        """The DAG's file on this machine. Raises SourceMissing, OSError, and what the database raises."""
        version = source.version(follow_newest=self._follow_newest)
        if not version:
            raise SourceMissing(f"no version of bundle {source.bundle_name} is stored yet: is a DAG processor running?")
        tree = self._folder / version
        if not self._is_there(version, tree):
            self._build(source.bundle_name, version, tree)
        path = tree / source.path
        if not path.is_file():
            raise SourceMissing(f"version {version[:12]} of bundle {source.bundle_name} has no file {source.path}")
        return DagFile(str(path), str(tree), version)

    def _is_there(self, version: str, tree: Path) -> bool:
        now = self._wall()
        if now - self._used.get(version, 0.0) < _TOUCH_SECONDS and tree.is_dir():
            return True
        try:
            os.utime(tree, (now, now))
        except FileNotFoundError:
            return False
        self._used[version] = now
        return True

    def _build(self, bundle_name: str, version: str, tree: Path) -> None:
        manifest = (
            BundleVersion.objects.filter(bundle_name=bundle_name, version=version).values_list("manifest").first()
        )
        if manifest is None:
            raise SourceMissing(f"version {version[:12]} of bundle {bundle_name} is not in the database")
        self._folder.mkdir(mode=self._folder_mode, parents=True, exist_ok=True)
        self._delete_unused()
        building = Path(tempfile.mkdtemp(prefix=".building-", dir=self._folder))
        try:
            self._lay_out(manifest[0], building)
            building.chmod(self._folder_mode)
            try:
                building.rename(tree)
            except OSError:
                if not tree.is_dir():  # else another worker of this machine was faster
                    raise
        finally:
            shutil.rmtree(building, ignore_errors=True)
        self._used[version] = self._wall()
        log.info("Version %s of bundle %s (%d files) is laid out", version[:12], bundle_name, len(manifest[0]))

    def _lay_out(self, manifest: Mapping[str, str], root: Path) -> None:
        paths: dict[str, list[str]] = {}
        for path, digest in manifest.items():
            pure = PurePosixPath(path)
            if pure.is_absolute() or ".." in pure.parts:
                raise SourceMissing(f"{path} leaves the bundle's folder")
            paths.setdefault(digest, []).append(path)
        digests = sorted(paths)
        for start in range(0, len(digests), _BLOBS_A_STATEMENT):
            some = digests[start : start + _BLOBS_A_STATEMENT]
            blobs = dict(SourceBlob.objects.filter(pk__in=some).values_list("pk", "content"))
            for digest in some:
                content = bytes(blobs.get(digest, b""))
                if hashlib.sha256(content).hexdigest() != digest:
                    raise SourceMissing(f"the contents of {paths[digest][0]} are not in the database as they were")
                for path in paths[digest]:
                    self._write(root / path, content, root)

    def _write(self, path: Path, content: bytes, root: Path) -> None:
        missing = []
        parent = path.parent
        while parent != root and not parent.exists():
            missing.append(parent)
            parent = parent.parent
        for folder in reversed(missing):
            folder.mkdir()
            folder.chmod(self._folder_mode)
        path.write_bytes(content)
        path.chmod(self._file_mode)

    def _delete_unused(self) -> None:
        oldest = self._wall() - _KEPT_SECONDS
        for entry in self._folder.iterdir():
            try:
                unused = entry.stat().st_mtime < oldest
            except FileNotFoundError:
                continue
            if unused and entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
                self._used.pop(entry.name, None)
