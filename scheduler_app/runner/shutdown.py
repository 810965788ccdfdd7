"""What a shutdown of ours does to the attempts that it interrupts: none of them is to blame."""

from __future__ import annotations

from collections.abc import Callable

from scheduler_app.engine import retries
from scheduler_app.engine.retries import Interrupted
from scheduler_app.runner import endings
from scheduler_app.runner.attempt import Attempt
from scheduler_app.supervisor.base import Exit

#: Who ends a service may send SIGTERM to all processes of it at once (systemd's default): what ends by it so soon after
#: the runner got it too was ended by that.
_SAME_SIGNAL_SECONDS = 15.0
_TO_ALL = "every process of this service got SIGTERM at once (systemd: KillMode=mixed lets tasks end by themselves)"


class Shutdown:
    def __init__(self, rule: Interrupted, monotonic: Callable[[], float]) -> None:
        self._rule, self._monotonic = rule, monotonic
        self._told_at: float | None = None

    def told(self) -> None:
        """The runner's process got SIGTERM. Called by a signal handler."""
        self._told_at = self._monotonic()

    def interrupts(self, attempt: Attempt) -> None:
        attempt.again = retries.begins_again(attempt.claim.task, self._rule)

    def ended(self, attempt: Attempt, exit: Exit) -> None:
        """An attempt is over: was it that signal?"""
        told_at = self._told_at
        if told_at is None or attempt.stopped_for or self._monotonic() - told_at > _SAME_SIGNAL_SECONDS:
            return
        if endings.is_by_signal(exit, attempt.outcome):
            attempt.stopped_for = _TO_ALL
            self.interrupts(attempt)
