"""BaseTrigger: what a deferred task waits for. It runs in the triggerer's event loop, so it must never block."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any


class BaseTrigger:
    """Override :meth:`serialize` and :meth:`run`. Two triggers that serialise alike may share one loop."""

    supports_triggerer_queue = True

    def __init__(self, **kwargs: Any) -> None:
        self.task_instance: Any = None
        self.trigger_id: Any = None

    @property
    def log(self) -> logging.Logger:
        return logging.getLogger(f"airflow.triggers.{type(self).__name__}")

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Dotted class path and the keyword arguments that make the same trigger again."""
        raise NotImplementedError(f"{type(self).__name__} has no serialize(): define it.")

    def run(self) -> AsyncIterator[TriggerEvent]:
        """Async generator: the first event that it yields ends the wait."""
        raise NotImplementedError(f"{type(self).__name__} has no run(): define it.")

    async def cleanup(self) -> None:
        """Called when the trigger ends, whether it fired or was cancelled."""

    async def on_kill(self) -> None:
        """Called when the waiting task is ended from outside."""

    def __repr__(self) -> str:
        classpath, kwargs = self.serialize()
        return f"<{classpath} {', '.join(f'{name}={value!r}' for name, value in kwargs.items())}>"


class BaseEventTrigger(BaseTrigger):
    """A trigger for AssetWatcher: it goes on after it fired."""

    shared_stream_key: Any = None


class TriggerEvent:
    """What a trigger yields; ``payload`` is handed to the task's method as ``event``."""

    def __init__(self, payload: Any) -> None:
        self.payload = payload

    def __repr__(self) -> str:
        return f"TriggerEvent<{self.payload!r}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TriggerEvent) and self.payload == other.payload

    def __hash__(self) -> int:
        return hash(repr(self.payload))


class BaseTaskEndEvent(TriggerEvent):
    """Ends the task without another attempt, in ``task_instance_state``, with ``xcoms`` pushed."""

    task_instance_state: str

    def __init__(self, *, xcoms: dict[str, Any] | None = None, **kwargs: Any) -> None:
        super().__init__(payload=self.task_instance_state)
        self.xcoms = xcoms


class TaskSuccessEvent(BaseTaskEndEvent):
    task_instance_state = "success"


class TaskFailedEvent(BaseTaskEndEvent):
    task_instance_state = "failed"


class TaskSkippedEvent(BaseTaskEndEvent):
    task_instance_state = "skipped"


@dataclass
class StartTriggerArgs:
    """How a task that begins in a trigger is started (``start_from_trigger``)."""

    trigger_cls: str
    next_method: str
    trigger_kwargs: dict[str, Any] | None = field(default_factory=dict)
    next_kwargs: dict[str, Any] | None = None
    timeout: Any = None
