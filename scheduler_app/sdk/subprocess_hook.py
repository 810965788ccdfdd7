"""Running a shell command: its output goes to the log line by line, and its whole process group can be ended."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import tempfile
from collections import namedtuple
from typing import Any

SubprocessResult = namedtuple("SubprocessResult", ["exit_code", "output"])
log = logging.getLogger("airflow.task.hooks.subprocess")


class SubprocessHook:
    """One command at a time."""

    def __init__(self, **kwargs: Any) -> None:
        self.sub_process: subprocess.Popen[bytes] | None = None
        self.log = log

    def run_command(
        self,
        command: list[str],
        env: dict[str, str] | None = None,
        output_encoding: str = "utf-8",
        cwd: str | None = None,
    ) -> SubprocessResult:
        """Exit code and last line of output (stdout and stderr together). ``env`` replaces the environment."""
        with contextlib.ExitStack() as stack:
            folder = cwd or stack.enter_context(tempfile.TemporaryDirectory(prefix="task"))
            self.sub_process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=env if env is not None else dict(os.environ),
                start_new_session=True,
            )
            line = ""
            assert self.sub_process.stdout is not None
            with self.sub_process.stdout as stream:
                for raw in stream:
                    line = raw.decode(output_encoding, errors="backslashreplace").rstrip()
                    self.log.info("%s", line)
            code = self.sub_process.wait()
        return SubprocessResult(exit_code=code, output=line)

    def send_sigterm(self) -> None:
        """Ends the command with all that it started."""
        if self.sub_process is not None and self.sub_process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.sub_process.pid, signal.SIGTERM)
