"""How an operator looks into a running process of ours: SIGUSR2 and, where a port is given, its metrics over HTTP."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import secrets
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import REGISTRY, CollectorRegistry, make_wsgi_app
from prometheus_client.multiprocess import MultiProcessCollector

import scheduler_app.metrics  # noqa: F401  (declares them: a process that counted nothing shows zeros)


class InspectionError(Exception):
    """The port of the metrics cannot be opened; the message says what to do."""


# ── SIGUSR2 ──────────────────────────────────────────────────────────────────────────────────────────────────────────
def answer_signal(describe: Callable[[], Iterable[str]]) -> None:
    """From now on SIGUSR2 writes these lines and the stack of every thread to the standard error.

    Its own answer to that signal would be to die. Does nothing outside of the main thread.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR2, lambda number, frame: _write(report(describe)))


def report(describe: Callable[[], Iterable[str]]) -> str:
    lines = [f"── {' '.join(sys.argv[:2])} (pid {os.getpid()}) was asked what it does"]
    try:
        lines += describe()
    except Exception:
        lines.append(f"It cannot say: {traceback.format_exc()}")
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        lines.append(f"── thread {names.get(ident, ident)}")
        lines += [line.rstrip() for line in traceback.format_stack(frame)[-12:]]
    return "\n".join(lines) + "\n"


def _write(text: str) -> None:
    # not through sys.stderr: the signal may have come in the middle of a write to it
    with contextlib.suppress(OSError):
        os.write(2, text.encode("utf-8", "replace"))


# ── metrics ──────────────────────────────────────────────────────────────────────────────────────────────────────────
@contextlib.contextmanager
def metrics_served(host: str, port: int, token: str) -> Iterator[int]:
    """Serves the metrics of this process for the time of the block; yields the port. Port 0: serves nothing.

    With a token only whoever sends it as ``Authorization: Bearer …`` is answered; without one, nobody but this machine
    may be served. Raises InspectionError.
    """
    if not port:
        yield 0
        return
    if not token and not _is_loopback(host):
        raise InspectionError(
            f"Metrics on {host} could be read by everybody: set SCHEDULER_METRICS_TOKEN, or SCHEDULER_METRICS_HOST to "
            "127.0.0.1."
        )
    try:
        server = make_server(host, port, _application(token), _Server, _Quiet)
    except OSError as error:
        raise InspectionError(
            f"Metrics cannot be served on {host}:{port} ({error.strerror}): give each process of this machine a port "
            "of its own (--metrics-port)."
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """A scrape every few seconds is no news."""


def _application(token: str) -> Callable[..., Any]:
    numbers = make_wsgi_app(_registry())

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        given = environ.get("HTTP_AUTHORIZATION", "").removeprefix("Bearer ")
        if token and not secrets.compare_digest(given.encode("latin-1"), token.encode()):
            headers = [("Content-Type", "text/plain"), ("WWW-Authenticate", 'Bearer realm="metrics"')]
            start_response("401 Unauthorized", headers)
            return [b"Send the token of SCHEDULER_METRICS_TOKEN.\n"]
        return numbers(environ, start_response)

    return answer


def _registry() -> CollectorRegistry:
    """Where processes share a folder of numbers (``bin/run``), those of all of them; else our own."""
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
