"""A throw-away database for a measurement: on the server of ``DATABASE_URL``, or on an embedded one started for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit


def reexec_with_embedded(module: str) -> None:
    """Starts the measurement again under a temporary embedded PostgreSQL when no DATABASE_URL is set."""
    if os.environ.get("DATABASE_URL"):
        return
    command = [sys.executable, "-m", "scheduler_app.embedded_db", sys.executable, "-m", module, *sys.argv[1:]]
    sys.exit(subprocess.call(command))


@contextlib.contextmanager
def empty_database(name: str) -> Iterator[str]:
    """The address of a new database on the server of DATABASE_URL; it is dropped at the end."""
    import psycopg2

    url = urlsplit(os.environ["DATABASE_URL"])
    database = f"bench_{name}_{os.getpid()}"
    admin = psycopg2.connect(urlunsplit(url))
    admin.autocommit = True
    admin.cursor().execute(f'CREATE DATABASE "{database}"')
    try:
        yield urlunsplit(url._replace(path=f"/{database}"))
    finally:
        admin.cursor().execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        admin.close()


@contextlib.contextmanager
def throwaway(name: str, **scheduler_settings: Any) -> Iterator[None]:
    """Sets Django up on a new, migrated database, and drops it at the end."""
    before = os.environ["DATABASE_URL"]
    with empty_database(name) as address:
        os.environ["DATABASE_URL"] = address
        os.environ["DJANGO_SETTINGS_MODULE"] = "scheduler_app.settings"
        try:
            import django
            from django.conf import settings
            from django.core.management import call_command

            django.setup()
            settings.SCHEDULER = {**settings.SCHEDULER, **scheduler_settings}
            call_command("migrate", verbosity=0)
            yield
        finally:
            from django.db import connections

            connections.close_all()
            os.environ["DATABASE_URL"] = before


class Server:
    """The CPU of the database's process that serves us, where it runs on this machine: no other load can change it."""

    def __init__(self) -> None:
        from scheduler_app.models import db

        self._pid = int(db.fetch("SELECT pg_backend_pid()")[0][0])

    def seconds(self) -> float | None:
        import psutil

        try:
            process = psutil.Process(self._pid)
            if "postgres" not in process.name():
                return None
            times = process.cpu_times()
        except psutil.Error:
            return None
        return float(times.user + times.system)
