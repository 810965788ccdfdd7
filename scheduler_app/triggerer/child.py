"""The child that runs the triggers of one bundle version, seen from our side."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scheduler_app import attempt_log
from scheduler_app.attempt_log import LogWriter
from scheduler_app.log_store.keeper import Keeper
from scheduler_app.models import db
from scheduler_app.runner import answers
from scheduler_app.runner.buffers import Buffer
from scheduler_app.supervisor.base import Base, Exit
from scheduler_app.supervisor.child import Clocks
from scheduler_app.supervisor.events import Events
from scheduler_app.wire import Channel, FrameTooLarge

from .rows import Result, Waiting

log = logging.getLogger(__name__)


class TriggerChild:
    """``results`` holds what has come back; ``on_end`` gets the triggers that were running when the process ended."""

    def __init__(
        self,
        base: Base,
        events: Events,
        clocks: Clocks,
        log_folder: Path,
        max_bytes: int,
        on_end: Callable[[TriggerChild, Exit], None],
        keeper: Keeper | None = None,
    ) -> None:
        self._base, self._events, self._clocks = base, events, clocks
        self._log_folder, self._on_end, self._keeper = log_folder, on_end, keeper
        self.triggers: dict[int, Waiting] = {}
        self.results: list[Result] = []
        self.alive = True
        ours, theirs = socket.socketpair()
        port, their_port = socket.socketpair()
        self._control, self._port = Channel(ours, max_bytes), Channel(port, max_bytes)
        events.watch(self._control, self._message, lambda why: None)
        events.watch(self._port, self._request, lambda why: None)
        self._key = base.fork(
            "triggers", {"wire": theirs.detach(), "port": their_port.detach()}, self._ended, max_bytes=max_bytes
        )

    def start(self, waiting: Waiting) -> None:
        """Run a trigger."""
        self.triggers[waiting.trigger_id] = waiting
        try:
            self._send(
                {
                    "op": "start",
                    "trigger": waiting.trigger_id,
                    "classpath": waiting.classpath,
                    "kwargs": waiting.kwargs,
                    "file": waiting.claim.file.path,
                    "folder": waiting.claim.file.folder,
                }
            )
        except FrameTooLarge as error:
            self._finish(Result(waiting.trigger_id, error={"type": "FrameTooLarge", "message": str(error)}))

    def cancel(self, trigger_id: int) -> None:
        """Nobody waits for it any more."""
        waiting = self.triggers.pop(trigger_id, None)
        if waiting is not None:
            self._forget_log(waiting)
            self._send({"op": "cancel", "trigger": trigger_id})

    def stop(self) -> None:
        """End the process; its triggers are not reported."""
        self.triggers.clear()
        self._base.kill(self._key, 15)

    def take_results(self) -> list[Result]:
        taken, self.results = self.results, []
        return taken

    def _send(self, message: dict[str, Any]) -> None:
        if not self._control.closed:
            self._events.send(self._control, message)

    def _message(self, message: dict[str, Any]) -> None:
        waiting = self.triggers.get(message.get("trigger", 0))
        if waiting is None:
            return
        if message["op"] == "event":
            self._fired(waiting, message)
        elif message["op"] == "failed":
            self._finish(Result(waiting.trigger_id, error=message["error"]))
        elif message["op"] == "log":
            self._write_log(waiting, message["level"], message["logger"], message["event"])

    def _fired(self, waiting: Waiting, message: dict[str, Any]) -> None:
        end = message.get("end")
        said = "the task goes on" if end is None else f"the task ends as {end['state']}"
        self._write_log(waiting, "info", "trigger", f"The trigger fired; {said}.")
        if end is None:
            self._finish(Result(waiting.trigger_id, payload=message["payload"]))
        else:
            self._finish(Result(waiting.trigger_id, end=end, claim=waiting.claim))

    def _finish(self, result: Result) -> None:
        self._forget_log(self.triggers.pop(result.trigger_id))
        self.results.append(result)

    def _request(self, request: dict[str, Any]) -> None:
        if "id" not in request:
            return
        waiting = self.triggers.get(request.get("trigger") or 0)
        reply: dict[str, Any] = {"id": request["id"]}
        try:
            if waiting is None:
                raise answers.Refusal("UnknownTrigger", "Only the code of a running trigger can ask for something.")
            reply["ok"] = answers.answer(waiting.claim, Buffer(), request, db.clock())
        except answers.Refusal as refusal:
            reply["error"] = {"type": refusal.kind, "message": str(refusal)}
        except Exception as error:
            # Whatever it is: without an answer the trigger would wait for ever.
            if isinstance(error, (db.DatabaseError, db.InterfaceError)):
                db.close()
            reply["error"] = {"type": type(error).__name__, "message": str(error).strip()}
        if not self._port.closed:
            self._events.send(self._port, reply)

    def _write_log(self, waiting: Waiting, level: str, logger: str, text: str) -> None:
        """Append to the log of the try that waits. A log that cannot be written stops nothing."""
        claim, file = waiting.claim, self._log_of(waiting)
        try:
            descriptor = attempt_log.open_for_append(file)
        except OSError as error:
            log.warning("The log %s cannot be written: %s", file, error)
            return
        try:
            LogWriter(descriptor, self._clocks.wall).write(level, logger, text)
        finally:
            os.close(descriptor)
        if self._keeper is not None:
            self._keeper.follow(file, claim.fence)

    def _log_of(self, waiting: Waiting) -> Path:
        claim = waiting.claim
        return attempt_log.path(
            self._log_folder, claim.dag_id, claim.run_id, claim.task_id, claim.map_index, claim.try_number
        )

    def _forget_log(self, waiting: Waiting) -> None:
        if self._keeper is not None:
            self._keeper.finish(self._log_of(waiting))

    def _ended(self, exit: Exit) -> None:
        for message in self._control.receive() if not self._control.closed else ():
            self._message(message)
        self.alive = False
        for channel in (self._control, self._port):
            self._events.forget(channel)
            channel.close()
        self._on_end(self, exit)
