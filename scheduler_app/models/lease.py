"""A process's life as a row: a :class:`Job` that a thread of its own keeps alive, also during a long step.

A process that could not say so for a whole lease counts as dead for everybody else; it must then stop by itself
(``lost``), because another one has taken over its work.
"""

from __future__ import annotations

import getpass
import logging
import os
import socket
import threading
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from scheduler_app import process_tree

from . import db, locks
from .job import Job

log = logging.getLogger(__name__)


class LeaseLost(Exception):
    """This process counts as dead: its job row is ended, or was silent for too long. Stop without writing anything."""


class Lease:
    """Context manager: inserts the job row, beats, and ends the row (success, or failed when an exception passes)."""

    def __init__(self, job_type: str, *, heartbeat_seconds: float, lease_seconds: float, **detail: Any) -> None:
        self._job_type, self._detail = job_type, detail
        self._heartbeat_seconds, self.seconds = heartbeat_seconds, lease_seconds
        self._stopping = threading.Event()
        self._lost = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="heartbeat", daemon=True)
        self._last_beat = 0.0
        self.job_id = 0

    def __enter__(self) -> Self:
        self._last_beat = time.monotonic()
        now = db.clock()
        self.job_id = Job.objects.create(
            job_type=self._job_type,
            hostname=socket.gethostname(),
            unixname=_user_name(),
            pid=os.getpid(),
            start_date=now,
            latest_heartbeat=now,
            detail={**self._detail, **identity()},
        ).pk
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        if self.lost:
            return
        try:
            ended = db.clock()
            Job.objects.filter(pk=self.job_id, state="running").update(
                state="failed" if kind else "success", end_date=ended, latest_heartbeat=ended, bundle_names=[]
            )
        except db.DatabaseError:
            log.warning("%s %s could not say that it stops; its lease runs out instead", self._job_type, self.job_id)

    @property
    def lost(self) -> bool:
        return self._lost.is_set() or time.monotonic() - self._last_beat > self.seconds

    def describe(self) -> str:
        ago = time.monotonic() - self._last_beat
        return f"{self._job_type} {self.job_id}, {'lost' if self.lost else 'held'}, last heartbeat {ago:.1f} s ago"

    def check(self) -> None:
        """Raises :class:`LeaseLost`: called before each step that writes."""
        if self.lost:
            raise LeaseLost(f"{self._job_type} {self.job_id} was silent for more than {self.seconds:g} s or was ended.")

    def guard(self) -> None:
        """Inside a transaction: nobody can end the job before it commits. Raises :class:`LeaseLost`."""
        if not db.fetch("SELECT 1 FROM scheduler_job WHERE id = %s AND state = 'running' FOR SHARE", [self.job_id]):
            self._lost.set()
            self.check()

    def beat(self) -> None:
        """Says once that this process is alive."""
        began = time.monotonic()
        if Job.objects.filter(pk=self.job_id, state="running").update(latest_heartbeat=db.clock()):
            self._last_beat = began
        else:
            self._lost.set()

    def _beat_on(self) -> None:
        try:
            while not self._lost.is_set() and not self._stopping.wait(self._heartbeat_seconds):
                try:
                    self.beat()
                except (db.DatabaseError, db.InterfaceError) as error:
                    log.warning("Heartbeat failed, trying again: %s", str(error).strip())
                    db.close()
        finally:
            db.close()


def identity() -> dict[str, Any]:
    """What a job row says so that a neighbour on the same machine sees its process end (:func:`bury_neighbours`)."""
    return {"machine": _machine(), "start_ticks": process_tree.start_ticks(os.getpid())}


def _machine() -> str:
    """The same for processes that see each other's process ids: one boot, one namespace of process ids."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def bury_neighbours(now: datetime, job_type: str | None = None) -> list[int]:
    """Ends the rows of jobs whose process was on this machine and is gone, before their lease is over; their ids."""
    machine = _machine()
    if not machine:
        return []
    neighbours = Job.objects.filter(state="running", detail__machine=machine)
    if job_type is not None:
        neighbours = neighbours.filter(job_type=job_type)
    gone = [
        key
        for key, pid, ticks in neighbours.values_list("pk", "pid", "detail__start_ticks")
        # a process id may be in use again; together with the start it names one process
        if pid is not None
        and ticks is not None
        and (process_tree.start_ticks(pid) != ticks or not process_tree.is_alive(pid))
    ]
    if gone:
        Job.objects.filter(pk__in=gone, state="running").update(state="failed", end_date=now, bundle_names=[])
    return gone


def claim_bundles(job_id: int, wanted: Iterable[str], now: datetime, lease_seconds: float) -> set[str]:
    """Makes `job_id` the owner of those bundles that no other living processor owns, and returns all that it owns now.

    A processor that was silent for its lease is ended here, so that its writes match nothing any more.
    """
    names = set(wanted)
    bury_neighbours(now, "DagProcessorJob")
    with db.atomic():
        locks.claim_bundles()
        others = Job.objects.filter(job_type="DagProcessorJob", state="running").exclude(pk=job_id)
        others.dead(now, lease_seconds).update(state="failed", end_date=now, bundle_names=[])
        taken = {name for owned in others.values_list("bundle_names", flat=True) for name in owned}
        mine = names - taken
        Job.objects.filter(pk=job_id, state="running").update(bundle_names=sorted(mine))
    return mine


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
