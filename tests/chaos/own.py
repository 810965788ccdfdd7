"""Services that a siege may kill: a PostgreSQL, a Redis and a RabbitMQ of its own, on ports of their own."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from scheduler_app import embedded_db, proc

START_SECONDS = 90.0
#: Debian's wrapper in /usr/sbin changes the user; the program itself does not.
RABBITMQ = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class Missing(Exception):
    """The program of a service is not installed."""


class Database:
    """``stop`` ends every connection, as a restart of the server does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self._server = folder, embedded_db.Server(folder)
        # the order of commits is what the limits are judged by
        self._server.options = self._server.options | {"track_commit_timestamp": "on"}
        self._server.start()
        self.url = embedded_db.url(folder)

    def away(self, seconds: float) -> None:
        self._server.stop()
        time.sleep(seconds)
        self._server.start()

    def close(self) -> None:
        self._server.stop()
        embedded_db.remove(self._folder)


class Broker:
    """A broker in a child process. ``restart`` kills it as hard as a process can be killed."""

    def __init__(self, command: list[str], environ: dict[str, str], url: str, log: Path, ready: Callable[[], bool]):
        self.url = url
        self._command, self._environ, self._log, self._ready = command, environ, log, ready
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        parent = os.getpid()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: proc.die_with_parent(parent),
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"The broker did not start:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.1)

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def _answers(port: int, say: bytes, expected: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as wire:
            wire.sendall(say)
            return wire.recv(64).startswith(expected)
    except OSError:
        return False


def redis(folder: Path) -> Broker:
    """It keeps nothing: with its process every message is gone."""
    program = shutil.which("redis-server")
    if program is None:
        raise Missing("redis-server is not installed")
    port = _free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    return Broker(
        command,
        dict(os.environ),
        f"redis://127.0.0.1:{port}/0",
        folder / "redis.log",
        lambda: _answers(port, b"PING\r\n", b"+PONG"),
    )


def rabbitmq(folder: Path) -> Broker:
    """A node beside those that may run here. A message that nobody acknowledges for twenty seconds ends its
    channel."""
    if not RABBITMQ.exists():
        raise Missing(f"RabbitMQ is not installed ({RABBITMQ})")
    port, node = _free_port(), f"chaos-{uuid.uuid4().hex[:8]}@localhost"
    config = folder / "rabbitmq.conf"
    config.write_text(
        f"listeners.tcp.default = 127.0.0.1:{port}\nconsumer_timeout = 20000\n"
        "vm_memory_high_watermark.absolute = 512MB\ndisk_free_limit.absolute = 50MB\nlog.console = true\n"
    )
    (folder / "plugins").write_text("[].\n")
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("RABBITMQ_")},
        "HOME": str(folder),
        "RABBITMQ_NODENAME": node,
        "RABBITMQ_CONFIG_FILE": str(config),
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_DIST_PORT": str(_free_port()),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none -rabbit channel_tick_interval 5000",
        "RABBITMQ_PID_FILE": str(folder / "pid"),
    }
    return Broker(
        [str(RABBITMQ)],
        environ,
        f"amqp://guest:guest@127.0.0.1:{port}//",
        folder / "rabbitmq.log",
        lambda: _answers(port, b"AMQP\x00\x00\x09\x01", b"\x01"),
    )


@contextlib.contextmanager
def broker(kind: str, folder: Path) -> Iterator[Broker]:
    """A broker of that kind of URL (``redis``, ``amqp``). Raises Missing."""
    folder.mkdir()
    made = redis(folder) if kind.startswith("redis") else rabbitmq(folder)
    try:
        made.start()
        yield made
    finally:
        made.kill()
