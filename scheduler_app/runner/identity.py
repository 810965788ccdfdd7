"""A runner's Job row: who it is, and that it lives."""

from __future__ import annotations

import getpass
import os
import socket
from datetime import datetime
from typing import Any

from scheduler_app.models import Job, lease
from scheduler_app.runner.claims import Worker


class Identity:
    """`job_type` as in models.job.JOB_TYPES. The row is made by :meth:`begin` and kept alive by :meth:`beat`."""

    def __init__(self, job_type: str, executor_class: str, detail: dict[str, Any]) -> None:
        self._job_type, self._executor_class, self._detail = job_type, executor_class, detail
        self._hostname, self._unixname = socket.gethostname(), _user_name()
        self._job_id = 0

    @property
    def worker(self) -> Worker:
        return Worker(self._job_id, self._hostname, self._unixname)

    def begin(self, now: datetime) -> int:
        """A new row; its id."""
        self._job_id = Job.objects.create(
            job_type=self._job_type,
            hostname=self._hostname,
            unixname=self._unixname,
            pid=os.getpid(),
            executor_class=self._executor_class,
            start_date=now,
            latest_heartbeat=now,
            # so that a neighbour sees our end at once, and not when the lease is over
            detail={**self._detail, **lease.identity()},
        ).pk
        return self._job_id

    def beat(self, now: datetime) -> None:
        """Say that we live. Whoever was silent for its lease is buried: it goes on under a new row."""
        living = Job.objects.filter(pk=self._job_id, state="running")
        if not living.update(latest_heartbeat=now):
            self.begin(now)

    def end(self, now: datetime, state: str = "success") -> None:
        Job.objects.filter(pk=self._job_id, state="running").update(state=state, end_date=now, latest_heartbeat=now)


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())
