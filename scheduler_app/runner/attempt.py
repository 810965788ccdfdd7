"""One attempt as its runner sees it: the claim, the process, what it pushed, how it ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from scheduler_app.engine import resources, states
from scheduler_app.engine.resources import Resources
from scheduler_app.runner import endings
from scheduler_app.runner.buffers import Buffer, Owner
from scheduler_app.runner.claims import Claim
from scheduler_app.runner.decide import Decision
from scheduler_app.runner.heartbeats import Beat
from scheduler_app.runner.outcomes import Report
from scheduler_app.supervisor.base import Exit
from scheduler_app.supervisor.child import Child

#: Messages that are kept here until the next write; everything else is a request to answer.
_BUFFERED = frozenset({"set_xcom", "delete_xcom", "set_rendered_fields", "mask_secret"})


#: Outcomes after which no other process of the same task instance may begin: they need not wait for this one's end.
_FINAL = frozenset({states.SUCCESS, states.SKIPPED})


class Home(Protocol):
    """The runner."""

    def said(self, attempt: Attempt) -> None: ...

    def asked(self, attempt: Attempt, request: dict[str, Any]) -> None: ...

    def over(self, attempt: Attempt, exit: Exit) -> None: ...


class Attempt:
    """Implements ``supervisor.child.Watcher``."""

    def __init__(self, claim: Claim, home: Home, default_limits: Resources = Resources(), kills: int = 0) -> None:  # noqa: B008
        self.claim, self._home = claim, home
        self.limits = _limits(claim, default_limits)
        #: how often the kernel had killed for lack of memory when it began
        self.kills = kills
        self.child: Child | None = None
        #: when somebody ships it
        self.log_file: Path | None = None
        self.buffer = Buffer()
        self.outcome: dict[str, Any] | None = None
        #: its outcome waits to be written, or is
        self.reported = False
        #: the outcome is written; what was decided, None when its row had moved on
        self.written = False
        self.decision: Decision | None = None
        #: the row is somebody else's by now: what this attempt reports is not written
        self.foreign = False
        #: why we ended it, for the row's reason
        self.stopped_for = ""
        #: a shutdown interrupted it, and whether it begins again; None: none did
        self.again: bool | None = None
        #: by the monotonic clock: when the second line of its execution time-out strikes
        self.deadline: float | None = None

    @property
    def key(self) -> tuple[int, int]:
        return self.claim.ti_id, self.claim.fence

    @property
    def owner(self) -> Owner:
        claim = self.claim
        return Owner(claim.ti_id, claim.run_pk, claim.dag_id, claim.task_id, claim.map_index)

    def message(self, child: Child, message: dict[str, Any]) -> None:
        op = message.get("op")
        if op == "outcome":
            self.outcome = message
        elif op == "end":
            if not self.reported and self.outcome is not None and self.outcome["state"] in _FINAL:
                self._home.said(self)
        elif op in _BUFFERED:
            self._keep(message)
            if "id" in message:
                child.answer(message)
        else:
            self._home.asked(self, message)

    def ended(self, child: Child, exit: Exit) -> None:
        # It may end before ``start`` has given it back to us: its file cannot be imported.
        self.child = child
        self._home.over(self, exit)

    def stop(self, why: str, monotonic: float, grace_seconds: float) -> bool:
        """SIGTERM now, SIGKILL to the whole tree after the grace time. False: it was told before, or is over."""
        if self.child is None or self.child.kill_at is not None:
            return False
        self.stopped_for = why
        self.child.log.write("warning", "task", f"The task is stopped: {why}.")
        self.child.stop(monotonic, grace_seconds)
        return True

    def watch_time(self, monotonic: float, grace_seconds: float) -> None:
        """The second line of ``execution_timeout``: the first is an alarm in the task's own process."""
        if self.child is None or self.child.pid is None or self.claim.task is None:
            return
        limit = self.claim.task.execution_timeout
        if limit is None:
            return
        if self.deadline is None:
            self.deadline = monotonic + limit + grace_seconds
        elif monotonic >= self.deadline:
            self.stop(f"it ran longer than its execution_timeout of {limit:g} s", monotonic, grace_seconds)

    def beat(self, taken: Buffer) -> Beat:
        return Beat(self.owner, self.claim.fence, self.child.pid if self.child else None, taken)

    def report(self, exit: Exit, out_of_memory: str = "") -> Report:
        """What is to be written, with the reason why it ended as it did."""
        text = endings.of_process(exit, self.stopped_for, self.limits, out_of_memory=out_of_memory)
        return Report(self.claim, self.outcome, text, self.buffer, self.stopped_for, self.again)

    def _keep(self, message: dict[str, Any]) -> None:
        if message["op"] == "set_xcom":
            self.buffer.push(message["key"], message["value"], message.get("map_length"))
        elif message["op"] == "delete_xcom":
            self.buffer.delete(message["key"])
        elif message["op"] == "set_rendered_fields":
            self.buffer.rendered = message["fields"]


def _limits(claim: Claim, default: Resources) -> Resources:
    """Of the task as it was stored; what it got wrong, its own process says."""
    try:
        return resources.of(claim.task.executor_config if claim.task else None, default)
    except ValueError:
        return default
