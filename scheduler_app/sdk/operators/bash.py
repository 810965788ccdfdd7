"""BashOperator: a shell command as a task."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Container
from functools import cached_property
from typing import Any

from scheduler_app.sdk.exceptions import AirflowException, AirflowSkipException
from scheduler_app.sdk.operator import BaseOperator
from scheduler_app.sdk.subprocess_hook import SubprocessHook


class BashOperator(BaseOperator):
    """Runs ``bash_command``; the last line of its output becomes the XCom.

    Exit code 0 is success, one of ``skip_on_exit_code`` (99) skips the task, any other fails it. ``env`` replaces the
    environment, or adds to it with ``append_env``. A command that ends in ``.sh`` or ``.bash`` is read from that file.
    """

    template_fields = ("bash_command", "env", "cwd")
    template_fields_renderers = {"bash_command": "bash", "env": "json"}
    template_ext = (".sh", ".bash")
    ui_color = "#f0ede4"

    def __init__(
        self,
        *,
        bash_command: Any,
        env: dict[str, str] | None = None,
        append_env: bool = False,
        output_encoding: str = "utf-8",
        skip_on_exit_code: int | Container[int] | None = 99,
        cwd: str | None = None,
        output_processor: Callable[[str], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bash_command = bash_command
        self.env, self.append_env, self.output_encoding, self.cwd = env, append_env, output_encoding, cwd
        codes: Any = skip_on_exit_code
        self.skip_on_exit_code = codes if isinstance(codes, Container) else [codes] if codes is not None else []
        self.output_processor = output_processor or (lambda output: output)

    @cached_property
    def subprocess_hook(self) -> SubprocessHook:
        return SubprocessHook()

    def get_env(self, context: Any) -> dict[str, str]:
        """The environment of the command, with the ``AIRFLOW_CTX_…`` variables."""
        from scheduler_app.sdk.context_env import context_to_environment

        env = dict(os.environ) if self.env is None or self.append_env else {}
        env.update(self.env or {})
        env.update(context_to_environment(context))
        return env

    def execute(self, context: Any) -> Any:
        return self._run(context, self.bash_command)

    def _run(self, context: Any, command: str) -> Any:
        if self.cwd is not None:
            if not os.path.exists(self.cwd):
                raise AirflowException(
                    f"The folder cwd={self.cwd!r} of task {self.task_id!r} does not exist: make it first."
                )
            if not os.path.isdir(self.cwd):
                raise AirflowException(f"cwd={self.cwd!r} of task {self.task_id!r} is no folder.")
        shell = shutil.which("bash") or "bash"
        result = self.subprocess_hook.run_command(
            command=[shell, "-c", command],
            env=self.get_env(context),
            output_encoding=self.output_encoding,
            cwd=self.cwd,
        )
        if result.exit_code in self.skip_on_exit_code:
            raise AirflowSkipException(f"The command ended with exit code {result.exit_code}: the task is skipped.")
        if result.exit_code != 0:
            last = f"Its last line was: {result.output!r}" if result.output else "It wrote nothing."
            raise AirflowException(f"{_ended(result.exit_code)}: the task fails. {last}")
        return self.output_processor(result.output)

    def on_kill(self) -> None:
        self.subprocess_hook.send_sigterm()


def _ended(code: int) -> str:
    """A negative code is a signal to bash itself; bash says 128 and more for one that ended what it ran."""
    number = -code if code < 0 else code - 128
    try:
        name = signal.Signals(number).name
    except ValueError:
        return f"The command ended with exit code {code}"
    return (
        f"The command was killed by signal {number} ({name})"
        if code < 0
        else (
            f"The command ended with exit code {code} (bash says so when signal {number}, {name}, killed a part of it)"
        )
    )
