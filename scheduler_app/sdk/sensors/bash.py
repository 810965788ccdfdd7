"""BashSensor: waits until a shell command ends well."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from scheduler_app.sdk.context_env import context_to_environment
from scheduler_app.sdk.exceptions import AirflowFailException
from scheduler_app.sdk.sensor_base import BaseSensorOperator
from scheduler_app.sdk.subprocess_hook import SubprocessHook


class BashSensor(BaseSensorOperator):
    """Exit code 0 is found, ``retry_exit_code`` (any other code when None) is "not yet"; the rest fails the task."""

    template_fields = ("bash_command", "env")
    template_ext: Sequence[str] = (".sh", ".bash")

    def __init__(
        self,
        *,
        bash_command: str,
        env: dict[str, str] | None = None,
        output_encoding: str = "utf-8",
        retry_exit_code: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.bash_command, self.env, self.output_encoding = bash_command, env, output_encoding
        self.retry_exit_code = retry_exit_code
        self._hook = SubprocessHook()

    def poke(self, context: Any) -> bool:
        env = {**(dict(os.environ) if self.env is None else self.env), **context_to_environment(context)}
        result = self._hook.run_command(
            ["bash", "-c", self.bash_command], env=env, output_encoding=self.output_encoding
        )
        if result.exit_code == 0:
            return True
        if self.retry_exit_code is not None and result.exit_code != self.retry_exit_code:
            raise AirflowFailException(f"The command ended with exit code {result.exit_code}.")
        return False

    def on_kill(self) -> None:
        self._hook.send_sigterm()
