"""Before Django starts: folders, keys, the cluster. ``settings.py`` reads what this writes.

``python -m scheduler_app.standalone.prepare`` is the first half of ``bin/run``; whatever stands in the way (the port,
a second start, a full disk) is said here, before anything runs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sys
from pathlib import Path

from cryptography.fernet import Fernet
from django.conf import settings
from django.core.management.utils import get_random_secret_key

from scheduler_app import embedded_db
from scheduler_app.conf import conf
from scheduler_app.secrets import read_or_create


class NotPossible(Exception):
    """Something stands in the way; the message says what to do."""


def prepare() -> None:
    """Makes what is missing below the home folder. Raises NotPossible or EmbeddedError."""
    _folders()
    if settings.EMBEDDED_DATABASE:
        with embedded_db.locked(conf().home):
            require_port(conf().host, conf().port)
            _fresh_metrics(conf().home / "metrics")
            _keys(conf().home)
            embedded_db.prepare(conf().home)
    else:
        require_port(conf().host, conf().port)
        _fresh_metrics(conf().home / "metrics")
        _keys(conf().home)


def require_port(host: str, port: int) -> None:
    """Raises NotPossible when the web server could not listen."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as gunicorn does: a port in TIME_WAIT is free
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            raise NotPossible(
                f"The web server cannot listen on {host}, port {port}: {error.strerror}. Nothing was started. "
                "Stop what uses it, or set SCHEDULER_PORT (and SCHEDULER_HOST) to something free."
            ) from error


def _folders() -> None:
    for folder in (conf().home, conf().dags_folder, conf().log_folder):
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise NotPossible(f"The folder {folder} cannot be made: {error.strerror}. Set SCHEDULER_HOME.") from error
    if not os.access(conf().home, os.W_OK | os.X_OK):
        raise NotPossible(f"This user may not write to {conf().home}. Set SCHEDULER_HOME to a folder of your own.")


def _fresh_metrics(folder: Path) -> None:
    """Counters begin at 0 with each start: what is left of processes that are gone would count for ever."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()


def _keys(home: Path) -> None:
    """Secrets that nobody gave us, each made once. Later starts read the files."""
    read_or_create(home / "secret_key", get_random_secret_key)
    read_or_create(home / "fernet_key", lambda: Fernet.generate_key().decode())
    read_or_create(settings.ADMIN_PASSWORD_FILE, lambda: settings.ADMIN_PASSWORD or secrets.token_urlsafe(12))


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_app.settings")
    try:
        prepare()
    except (NotPossible, embedded_db.EmbeddedError) as error:
        print(f"bin/run: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
