"""The base: one preloaded child that forks all other children (``usercode.main``)."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scheduler_app.conf import conf
from scheduler_app.supervisor import leftovers
from scheduler_app.supervisor.environment import scrubbed
from scheduler_app.supervisor.events import Events
from scheduler_app.wire import Channel, Json

PROGRAM = "scheduler_app.usercode.main"
#: as usercode.own_django reads it
OWN_DJANGO = "SCHEDULER_TASK_DJANGO_SETTINGS_MODULE"
_PACKAGE_PARENT = Path(__file__).resolve().parent.parent.parent
_STOP_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended. ``code``: exit code, or minus the signal; None when nobody could see it."""

    code: int | None
    why: str = ""
    cpu_seconds: float = 0.0
    max_rss_kb: int = 0

    @property
    def text(self) -> str:
        """In words, for a log line and the ``reason`` of a row."""
        if self.why:
            return self.why
        if self.code is None:
            return "its process is gone"
        if self.code < 0:
            try:
                name = signal.Signals(-self.code).name
            except ValueError:
                name = "unknown"
            return f"its process was killed by signal {-self.code} ({name})"
        return f"its process exited with code {self.code}"


class Base:
    """A running base. ``fork`` asks for a child; ``on_exit`` of that child is called once, whatever happens.

    Raises OSError when it cannot be started (no such ``task_user``, or one who cannot reach the interpreter).
    """

    def __init__(self, events: Events, environ: Mapping[str, str], work_folder: str) -> None:
        self._events = events
        leftovers.end_leftovers()
        ours, theirs = socket.socketpair()
        lifeline_read, self._lifeline = os.pipe()
        command = [sys.executable, "-m", PROGRAM, "--control", str(theirs.fileno()), "--lifeline", str(lifeline_read)]
        try:
            self._process = subprocess.Popen(
                [*command, "--folder", work_folder],
                # The module must be found although the package may not be installed; the base changes its folder.
                cwd=_PACKAGE_PARENT,
                env={
                    **scrubbed(environ),
                    **_home_of(conf().task_user),
                    leftovers.MARK: leftovers.mark(os.getpid()),
                    OWN_DJANGO: conf().task_django_settings_module,
                },
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr if _has_fd(sys.stderr) else None,
                pass_fds=(theirs.fileno(), lifeline_read),
                # Ctrl-C at the terminal is for the process that started us; it stops the base in order.
                start_new_session=True,
                **_as_user(conf().task_user),
            )
        except BaseException:
            ours.close()
            os.close(self._lifeline)
            raise
        finally:
            theirs.close()
            os.close(lifeline_read)
        self.pid = self._process.pid
        self.alive = True
        #: it has imported the SDK and answers
        self.ready = False
        self._channel = Channel(ours)
        self._next_key = 0
        self._waiting: dict[int, tuple[Callable[[int], None], Callable[[Exit], None]]] = {}
        events.watch(self._channel, self._message, self._closed)

    def fork(
        self,
        role: str,
        fds: Mapping[str, int],
        on_exit: Callable[[Exit], None],
        on_forked: Callable[[int], None] = lambda pid: None,
        **message: Json,
    ) -> int:
        """Fork a child in `role`; `fds` belong to it from now on. Returns the key for :meth:`kill`."""
        self._next_key += 1
        key = self._next_key
        self._waiting[key] = (on_forked, on_exit)
        order = {"op": "fork", "key": key, "role": role, "fds": list(fds), **message}
        self._events.send(self._channel, order, tuple(fds.values()), close_fds=True)
        return key

    def kill(self, key: int, number: int = signal.SIGKILL) -> None:
        """Signal a child; SIGKILL takes its whole tree."""
        if self.alive and key in self._waiting:
            self._events.send(self._channel, {"op": "signal", "key": key, "signal": int(number)})

    def stop(self) -> None:
        """End the base and every descendant of it; returns when they are gone."""
        self._events.forget(self._channel)
        self._closed("stopped")
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _message(self, message: dict[str, Any]) -> None:
        if message["op"] == "ready":
            self.ready = True
        elif message["op"] == "forked" and message["key"] in self._waiting:
            self._waiting[message["key"]][0](message["pid"])
        elif message["op"] == "exited" and message["key"] in self._waiting:
            _, on_exit = self._waiting.pop(message["key"])
            on_exit(exit_of(message))

    def _closed(self, why: str) -> None:
        if not self.alive:
            return
        self.alive = False
        self._channel.close()
        os.close(self._lifeline)
        waiting, self._waiting = self._waiting, {}
        for _, on_exit in waiting.values():
            on_exit(Exit(None, f"the process that forks tasks is gone{f' ({why})' if why else ''}"))

    def reap(self) -> int | None:
        """The exit code of a base that has ended, else None; collects the zombie."""
        return self._process.poll()


def exit_of(message: Mapping[str, Any]) -> Exit:
    """The value of an ``exited`` message."""
    return Exit(message["code"], message.get("why", ""), message.get("cpu_seconds", 0.0), message.get("max_rss_kb", 0))


def _as_user(name: str) -> dict[str, Any]:
    """Arguments that make the base another system user's: the wall between user code and our secrets (task_user)."""
    if not name:
        return {}
    account = _account(name)
    groups = os.getgrouplist(name, account.pw_gid)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": groups}


def _home_of(name: str) -> dict[str, str]:
    if not name:
        return {}
    account = _account(name)
    return {"HOME": account.pw_dir, "USER": name, "LOGNAME": name}


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise OSError(f"There is no system user {name!r}: create it, or change SCHEDULER_TASK_USER.") from None


def _has_fd(stream: Any) -> bool:
    try:
        return stream.fileno() >= 0
    except (AttributeError, OSError, ValueError):
        return False
