"""The DAG processor that ``runscheduler`` starts beside itself, as the seed's command did (F-02, F-12)."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from scheduler_app import proc
from scheduler_app.conf import conf
from scheduler_app.models import Job, db

log = logging.getLogger("scheduler_app.scheduler")

#: The bundle of the DAG folder.
BUNDLE = "dags"
_MANAGE = Path(__file__).resolve().parents[2] / "manage.py"


class Processor:
    """A child process for the time of the ``with`` block; none where a living processor owns the folder already."""

    def __init__(self, *, wanted: bool, subdir: str | None, num_times: int) -> None:
        self._wanted, self._subdir, self._num_times = wanted, subdir, num_times
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._wanted and self._folder_has_an_owner():
            log.info("A DAG processor owns the DAG folder already; none is started here")
        elif self._wanted:
            self._child = self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is None or self._child.poll() is not None:
            return
        self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(conf().stop_seconds)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()

    def is_over(self) -> bool:
        """Whether it parsed everything as often as it was asked to, and ended."""
        return self._num_times > 0 and self._child is not None and self._child.poll() is not None

    def _folder_has_an_owner(self) -> bool:
        alive = Job.objects.alive(db.clock(), conf().lease_seconds).filter(job_type="DagProcessorJob")
        return any(BUNDLE in names for names in alive.values_list("bundle_names", flat=True))

    def _start(self) -> subprocess.Popen[bytes]:
        program = [str(_MANAGE)] if _MANAGE.exists() else ["-m", "django"]
        command = [sys.executable, *program, "rundagprocessor"]
        if self._subdir:
            command += ["--subdir", self._subdir]
        if self._num_times > 0:
            command += ["--num-parses", str(self._num_times)]
        parent = os.getpid()
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: proc.die_with_parent(parent, signal.SIGTERM),  # noqa: PLW1509  (prctl alone, no lock)
        )
