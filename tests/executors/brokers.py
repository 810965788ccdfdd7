"""Real workers behind real brokers, and a wire between them that a test can cut."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from scheduler_app import process_tree
from scheduler_app.models import Job

ROOT = Path(__file__).resolve().parents[2]


class Wire:
    """A TCP relay to a service. ``cut`` closes every connection that goes through it; new ones are taken.

    `host` is the address that it listens on, `target` another place than the URL's: (host, port) or a Unix socket.
    """

    def __init__(self, url: str, host: str = "127.0.0.1", target: tuple[str, int] | str | None = None) -> None:
        address = urlsplit(url)
        self._target = target or (address.hostname or "", address.port or 0)
        self._listener = socket.create_server((host, 0))
        self._open: list[socket.socket] = []
        user = f"{address.username}:{address.password}@" if address.username else ""
        self.url = urlunsplit(address._replace(netloc=f"{user}{host}:{self._listener.getsockname()[1]}"))
        self._closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """How many sockets were cut."""
        cut, self._open = self._open, []
        for one in cut:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        return len(cut)

    def close(self) -> None:
        self._closed = True
        self._listener.close()
        self.cut()

    def _reach(self) -> socket.socket:
        if not isinstance(self._target, str):
            return socket.create_connection(self._target)
        far = socket.socket(socket.AF_UNIX)
        far.connect(self._target)
        return far

    def _accept(self) -> None:
        while not self._closed:
            try:
                near, _ = self._listener.accept()
                far = self._reach()
            except OSError:
                continue
            self._open += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@dataclass
class Workers:
    """Celery workers of one test, each in an empty folder of its own. ``url`` is what they are told."""

    url: str
    queue: str
    folder: Path
    environ: dict[str, str]
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    #: what comes before the command of a worker, to start it somewhere else
    prefix: list[str] = field(default_factory=list)

    def start(self, slots: int = 2, *arguments: str) -> subprocess.Popen[bytes]:
        """Returns when its runner has said that it is there."""
        name = f"w{len(self.running)}-{uuid.uuid4().hex[:6]}"
        home = self.folder / name
        home.mkdir()
        command = [sys.executable, "-m", "celery", "-A", "scheduler_app", "worker", "-n", name, "-Q", self.queue]
        log = (self.folder / f"{name}.log").open("wb")
        process = subprocess.Popen(
            [*self.prefix, *command, "--concurrency", str(slots), *arguments],
            cwd=home,
            env={**self.environ, "SCHEDULER_HOME": str(home), "SCHEDULER_CELERY_BROKER_URL": self.url},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        self.running.append(process)
        wait_for(lambda: process.poll() is not None or self.job(name), 60)
        assert process.poll() is None, self.logs()
        return process

    def job(self, name: str) -> Job | None:
        return Job.objects.filter(job_type="CeleryWorkerJob", detail__worker=f"celery@{name}", state="running").first()

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """``kill -9``; none of its descendants is left after two seconds."""
        below = process_tree.descendants(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        wait_for(lambda: not [pid for pid in below if process_tree.is_alive(pid)], 2)

    def stop(self) -> None:
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGQUIT)
        for process in self.running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def logs(self) -> str:
        return "\n".join(path.read_text()[-3000:] for path in sorted(self.folder.glob("*.log")))


def wait_for(condition: Callable[[], Any], seconds: float = 30.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.02)
    return found


def environment(database_url: str, ledger: Path) -> dict[str, str]:
    """Of a worker: this test's database, short times, nothing of the scheduler's folders."""
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("SCHEDULER_")},
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "scheduler_app.settings",
        "PYTHONPATH": str(ROOT),
        "SCHEDULER_TASK_HEARTBEAT_SECONDS": "0.3",
        "SCHEDULER_KILL_GRACE_SECONDS": "0.5",
        "LEDGER": str(ledger),
    }
