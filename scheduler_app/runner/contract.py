"""What a runner is given, and whom it tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from scheduler_app.engine.resources import Resources
from scheduler_app.engine.retries import Interrupted

#: (task instance id, fence)
Key = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Options:
    slots: int
    log_folder: Path
    heartbeat_seconds: float
    #: silent for so long, the scheduler may give a task to somebody else: our attempts of it must be gone by then
    heartbeat_timeout_seconds: float
    kill_grace_seconds: float
    #: which tasks begin again that a shutdown interrupted
    interrupted: Interrupted = "with_retries"
    #: of tasks that name none of their own
    limits: Resources = Resources()  # noqa: RUF009 - it cannot be changed


class Listener(Protocol):
    """Who handed out. ``done``: the slot is free, and nothing more will be written for it.

    It is told after the commit: a scheduler that wakes up for a free slot must find the end that freed it.
    """

    def done(self, keys: Sequence[Key]) -> None: ...

    def begun(self, keys: Sequence[Key]) -> None:
        """These are claimed: whoever hands them out again is refused from now on."""
        ...
