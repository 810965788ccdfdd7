"""``manage.py standalone``: the database first, then everything else from one preloaded process, the database last."""

from __future__ import annotations

import sys
import time
from functools import partial
from random import Random

from django.conf import settings
from django.db import connections  # noqa: TID251  (closes all of them before the forks)
from django.urls import get_resolver

from scheduler_app import embedded_db, proc
from scheduler_app.conf import conf

from .bootstrap import ADMIN, ensure_admin, migrate
from .components import COMPONENTS, DATABASE, Component
from .output import Output
from .prepare import NotPossible
from .supervisor import Service, Supervisor, fork


def run_standalone() -> int:
    """Runs until a stop signal; the exit code. Raises EmbeddedError or NotPossible when it cannot start."""
    if not settings.EMBEDDED_DATABASE:
        return _run_components(None)
    if settings.SECRET_KEY_IS_TEMPORARY or embedded_db.read_cluster(conf().home) is None:
        raise NotPossible(f"{conf().home} is not prepared. Start bin/run, which makes keys and a database first.")
    server = embedded_db.Server(conf().home)
    with embedded_db.locked(conf().home):
        try:
            server.start()
            return _run_components(server)
        finally:
            server.stop()


def _run_components(server: embedded_db.Server | None) -> int:
    migrate()
    password = ensure_admin()
    services = [_forked(component) for component in COMPONENTS]
    get_resolver().url_patterns  # noqa: B018  (loads every page and endpoint)
    connections.close_all()  # a connection must not be shared by two processes
    proc.keep_what_is_loaded()
    width = max(len(component.name) for component in (*COMPONENTS, DATABASE)) + 1
    supervisor = Supervisor(
        services,
        output=Output(sys.stdout, width=width, colour=sys.stdout.isatty() and not settings.NO_COLOUR),
        clock=time.monotonic,
        rng=Random(),
        stop_seconds=conf().stop_seconds + conf().shutdown_grace_seconds,
    )
    if password:
        supervisor.say(f"Log in as {ADMIN} with the password {password} (kept in {settings.ADMIN_PASSWORD_FILE})")
    running = []
    if server is not None and server.process is not None:
        running.append((_database(server), server.process.pid))
    return supervisor.run(running)


def _forked(component: Component) -> Service:
    return Service(component.name, component.colour, partial(fork, component.name, component.load()))


def _database(server: embedded_db.Server) -> Service:
    """The running server, started again should it die."""

    def launch() -> tuple[int, None]:
        return server.launch(), None

    return Service(DATABASE.name, DATABASE.colour, launch, ours_to_stop=False)
