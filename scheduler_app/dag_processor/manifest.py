"""The contents of a bundle at one moment: a manifest path → sha256, its blobs stored once."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from datetime import datetime, timedelta

from scheduler_app.models import BundleVersion, SourceBlob, db, locks

from .bundle import Bundle
from .scan import Stamp

log = logging.getLogger(__name__)

#: Files larger than this are data, not source: they are not kept.
MAX_SOURCE_BYTES = 1024 * 1024
_BLOBS_A_STATEMENT = 100
_QUIET = timedelta(minutes=1)


class Manifests:
    """Keeps the manifest of each bundle; an unchanged file is not read again."""

    def __init__(self, suffixes: tuple[str, ...]) -> None:
        self._suffixes = suffixes
        self._hashes: dict[str, dict[str, tuple[Stamp, str]]] = {}
        self._versions: dict[str, str] = {}
        self._made_at: dict[str, datetime] = {}

    def version(self, bundle: Bundle, files: Mapping[str, Stamp], now: datetime) -> str:
        """The version of the folder as it is now; stores it, and the contents that are new, when it is a new one.

        Files that are not Python may be written by tasks all the time: they alone make a version once a minute at most.
        """
        old = self._hashes.get(bundle.name, {})
        if self._may_wait(bundle, files, now):
            return self._versions[bundle.name]
        hashes: dict[str, tuple[Stamp, str]] = {}
        contents: dict[str, bytes] = {}
        for path, stamp in files.items():
            if not self._is_source(path, stamp):
                continue
            known = old.get(path)
            if known is not None and known[0] == stamp:
                hashes[path] = known
                continue
            try:
                content = (bundle.folder / path).read_bytes()
            except OSError as error:
                log.warning("%s cannot be read (%s): this version of %s lacks it", path, error.strerror, bundle.name)
                hashes[path] = (stamp, "")  # not tried again until it changes
                continue
            digest = hashlib.sha256(content).hexdigest()
            hashes[path] = (stamp, digest)
            contents[digest] = content
        self._hashes[bundle.name] = hashes
        if contents or hashes.keys() != old.keys() or bundle.name not in self._versions:
            self._versions[bundle.name] = self._store(bundle, contents, now)
            self._made_at[bundle.name] = now
        return self._versions[bundle.name]

    def is_current(self, bundle: Bundle, files: Mapping[str, Stamp]) -> bool:
        """Whether the version holds these files as they are."""
        kept = self._hashes.get(bundle.name, {})
        return all(files.get(path) == stamp for path, (stamp, _) in kept.items()) and all(
            path in kept for path, stamp in files.items() if self._is_source(path, stamp)
        )

    def _is_source(self, path: str, stamp: Stamp) -> bool:
        return stamp[1] <= MAX_SOURCE_BYTES and path.endswith(self._suffixes)

    def _may_wait(self, bundle: Bundle, files: Mapping[str, Stamp], now: datetime) -> bool:
        made_at = self._made_at.get(bundle.name)
        if made_at is None or now - made_at >= _QUIET:
            return False
        known = {path: stamp for path, (stamp, _) in self._hashes[bundle.name].items() if path.endswith(".py")}
        return known == {
            path: stamp for path, stamp in files.items() if path.endswith(".py") and self._is_source(path, stamp)
        }

    def sha256(self, bundle: Bundle, path: str) -> str:
        """Of the file as the last :meth:`version` saw it; empty when it is not kept."""
        return self._hashes.get(bundle.name, {}).get(path, ((0, 0), ""))[1]

    def _store(self, bundle: Bundle, contents: Mapping[str, bytes], now: datetime) -> str:
        manifest = {path: digest for path, (_, digest) in sorted(self._hashes[bundle.name].items()) if digest}
        version = hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
        with db.atomic():
            locks.keep_blobs()
            known = set(SourceBlob.objects.filter(pk__in=list(contents)).values_list("pk", flat=True))
            missing = [
                SourceBlob(sha256=digest, content=content)
                for digest, content in sorted(contents.items())
                if digest not in known
            ]
            SourceBlob.objects.bulk_create(missing, ignore_conflicts=True, batch_size=_BLOBS_A_STATEMENT)
            BundleVersion.objects.bulk_create(
                [BundleVersion(bundle_name=bundle.name, version=version, manifest=manifest, created_at=now)],
                ignore_conflicts=True,
            )
        return version
