"""The triggers of deferred tasks, many in one asyncio loop: a role of ``usercode.main``, one child a bundle version.

The triggerer sends ``start`` and ``cancel``; this side sends ``event`` or ``failed`` once for each trigger, and ``log``
(docs/borders.md §6). A trigger that blocks the loop holds up the others; that is logged with its name.
"""

from __future__ import annotations

import asyncio
import contextvars
import gc
import importlib
import inspect
import logging
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
from typing import Any

import scheduler_app.sdk.moments  # noqa: F401  (arguments and events may hold them)
from scheduler_app import proc, wire
from scheduler_app.attempt_log import Masks
from scheduler_app.sdk.runtime import set_port
from scheduler_app.sdk.triggers.base import BaseTaskEndEvent
from scheduler_app.usercode import load
from scheduler_app.usercode.port import WirePort
from scheduler_app.wire import BlockingChannel, Channel, Json

#: The trigger whose code is running: log lines and requests belong to it.
_current: contextvars.ContextVar[int | None] = contextvars.ContextVar("trigger", default=None)
#: A loop that does not come round for so long is blocked by some trigger's own code.
_BLOCKED_SECONDS = 1.0
_WATCH_SECONDS = 0.25
log = logging.getLogger(__name__)


def run(message: dict[str, Any], fds: dict[str, int]) -> int:
    """The role: serve until the triggerer is gone. `fds`: ``wire`` (orders and events) and ``port`` (requests)."""
    proc.set_name("tasks: triggers")
    random.seed()
    gc.enable()
    control = Channel(socket.socket(fileno=fds["wire"]), message["max_bytes"])
    masks = Masks()
    port = TriggerPort(BlockingChannel(socket.socket(fileno=fds["port"]), message["max_bytes"]), masks)
    set_port(port)
    asyncio.run(Host(control, masks).serve())
    return 0


class TriggerPort(WirePort):
    """The port of an attempt, which also says which of the many triggers asks."""

    def request(self, op: str, **arguments: Any) -> Json:
        return super().request(op, trigger=_current.get(), **arguments)

    def tell(self, op: str, **arguments: Any) -> None:
        super().tell(op, trigger=_current.get(), **arguments)


class Host:
    """The loop's own side: orders in, results out."""

    def __init__(self, control: Channel, masks: Masks) -> None:
        self._control, self._masks = control, masks
        self._tasks: dict[int, asyncio.Task[None]] = {}
        #: those that the triggerer cancelled; others end with this process and go on elsewhere
        self._cancelled: set[int] = set()
        self._over: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.get_ident()
        #: when the loop last came round, by the monotonic clock; and who held it up: how long, which trigger, where
        self._round = time.monotonic()
        self._blocked: tuple[float, int | None, str] | None = None

    async def serve(self) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, self._over.set)
        loop.add_reader(self._control.fileno(), self._read)
        root = logging.getLogger()
        root.handlers[:] = [_Handler(self)]
        root.setLevel(logging.INFO)
        watch = asyncio.create_task(self._watch())
        await self._over.wait()
        watch.cancel()
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(watch, *self._tasks.values(), return_exceptions=True)

    def send(self, message: Json) -> None:
        """Send what the socket takes now; the loop sends the rest."""
        self._control.send(message)
        if self._control.wants_write:
            asyncio.get_running_loop().add_writer(self._control.fileno(), self._write)
        self._check()

    def _write(self) -> None:
        self._control.flush()
        if not self._control.wants_write:
            asyncio.get_running_loop().remove_writer(self._control.fileno())
        self._check()

    def _read(self) -> None:
        for message in self._control.receive():
            if message["op"] == "start":
                key = message["trigger"]
                context = contextvars.copy_context()
                context.run(_current.set, key)
                self._tasks[key] = asyncio.get_running_loop().create_task(self._run(message), context=context)
            elif message["op"] == "cancel" and message["trigger"] in self._tasks:
                self._cancelled.add(message["trigger"])
                self._tasks[message["trigger"]].cancel()
        self._check()

    def _check(self) -> None:
        if self._control.closed and self._over is not None:
            self._over.set()

    async def _run(self, order: dict[str, Any]) -> None:
        """One trigger, from its class to its event; whatever it raises is its own failure."""
        key, trigger = order["trigger"], None
        try:
            trigger = build(order)
            event = await _first_event(trigger)
            self.send({"op": "event", "trigger": key, **_described(event)})
        except asyncio.CancelledError:
            if key in self._cancelled:
                log.info("The trigger was cancelled: nobody waits for it any more.")
                await self._call(trigger, "on_kill")
        except BaseException as error:
            self._failed(key, error)
            if isinstance(error, (SystemExit, KeyboardInterrupt)):
                log.error("%s in a trigger ends that trigger alone.", type(error).__name__)
        finally:
            await self._call(trigger, "cleanup")
            self._tasks.pop(key, None)
            self._cancelled.discard(key)

    def _failed(self, key: int, error: BaseException) -> None:
        lines = traceback.format_exception(error)
        log.error("The trigger failed: %s", "".join(lines).rstrip())
        self.send(
            {
                "op": "failed",
                "trigger": key,
                "error": {
                    "type": type(error).__qualname__,
                    "message": self._masks.clean(str(error)),
                    "traceback": [self._masks.clean(line) for line in lines],
                },
            }
        )

    async def _call(self, trigger: Any, name: str) -> None:
        """One of the author's hooks, if there is one; what it raises is logged."""
        hook = getattr(trigger, name, None)
        if hook is None:
            return
        try:
            result = hook()
            if inspect.isawaitable(result):
                await result
        except Exception:
            log.exception("The trigger's %s() failed.", name)

    async def _watch(self) -> None:
        """Comes round while nobody blocks the loop; a thread sees when it does not, and what the loop is doing then."""
        watchdog = threading.Thread(target=self._guard, name="watchdog", daemon=True)
        watchdog.start()
        while True:
            self._round = time.monotonic()
            culprit, self._blocked = self._blocked, None
            if culprit is not None:
                self._say_blocked(*culprit)
            await asyncio.sleep(_WATCH_SECONDS)

    def _guard(self) -> None:
        while self._over is not None and not self._over.is_set():
            time.sleep(_WATCH_SECONDS)
            late = time.monotonic() - self._round - _WATCH_SECONDS
            if late > _BLOCKED_SECONDS and self._loop is not None:
                task = asyncio.current_task(self._loop)
                key = next((key for key, one in list(self._tasks.items()) if one is task), None)
                frame = sys._current_frames().get(self._thread)
                where = "".join(traceback.format_stack(frame)[-3:]) if frame is not None else ""
                self._blocked = (late, key, where)

    def _say_blocked(self, seconds: float, key: int | None, where: str) -> None:
        """In the log of the try whose trigger did it, and in that of the triggerer."""
        whose = f"Trigger {key}" if key is not None else "Somebody"
        sys.stderr.write(f"{whose} held up all triggers of this process for more than {seconds:.1f} s, in\n{where}")
        if key is not None:
            text = (
                f"This trigger held up all others of its process for more than {seconds:.1f} s: it calls something that"
                f" waits. Use an async client in its run(). It was in\n{where}"
            )
            self._line(key, "warning", "trigger", text.rstrip())

    def log(self, level: str, logger: str, event: str) -> None:
        """One line for the try that waits; any thread may log."""
        key = _current.get()
        if key is None or self._control.closed or self._loop is None:
            return
        self._line(key, level, logger, event)

    def _line(self, key: int, level: str, logger: str, event: str) -> None:
        line = {"op": "log", "trigger": key, "level": level, "logger": logger, "event": self._masks.clean(event)}
        if threading.get_ident() == self._thread:
            self.send(line)
        elif self._loop is not None:
            self._loop.call_soon_threadsafe(self.send, line)


class _Handler(logging.Handler):
    """What triggers log goes to the log of the try that waits for them."""

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self.format(record)
        except Exception:
            self.handleError(record)
            return
        self._host.log(record.levelname.lower(), record.name, text)


def build(order: dict[str, Any]) -> Any:
    """The trigger of a ``start`` order: its class is imported from where its DAG file lies.

    Raises ImportError naming the class, and whatever the class raises.
    """
    file, folder = order["file"], order["folder"]
    for entry in (os.path.dirname(file), folder, os.path.join(os.path.dirname(folder), "plugins")):
        if entry and entry not in sys.path and os.path.isdir(entry):
            sys.path.append(entry)
    module, _, name = order["classpath"].rpartition(".")
    if module == load.module_name(file) and module not in sys.modules:
        load.import_file(file, folder)
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ImportError(
            f"The trigger {order['classpath']} cannot be imported: {error}. Keep trigger classes in a module of the "
            "DAG folder or in an installed package, and let serialize() name it."
        ) from error
    trigger = found(**wire.decode(order["kwargs"], classes=wire.import_class))
    trigger.trigger_id = order["trigger"]
    return trigger


async def _first_event(trigger: Any) -> Any:
    """The first event; a trigger that ends without one is an error."""
    async for event in trigger.run():
        return event
    raise RuntimeError(f"{type(trigger).__name__}.run() ended without an event: the task would wait for ever.")


def _described(event: Any) -> dict[str, Json]:
    """The event as the triggerer gets it; an event that ends the task says how, and what it pushes."""
    if isinstance(event, BaseTaskEndEvent):
        xcoms = {key: wire.encode(value, key) for key, value in (event.xcoms or {}).items()}
        return {"payload": None, "end": {"state": event.task_instance_state, "xcoms": xcoms}}
    return {"payload": wire.encode(getattr(event, "payload", event), "the event")}
