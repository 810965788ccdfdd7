"""The web server: gunicorn with threads, in this process, over the application that the parent has loaded."""

from __future__ import annotations

import os
from typing import Any

from django.conf import settings
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from scheduler_app import proc
from scheduler_app.conf import conf
from scheduler_app.wsgi import application


def address() -> str:
    """Where people find the pages; "every address" is shown as this machine."""
    host = conf().host
    shown = "127.0.0.1" if host in ("0.0.0.0", "") else "[::1]" if host == "::" else host
    return f"http://{f'[{shown}]' if ':' in shown and not shown.startswith('[') else shown}:{conf().port}"


class Server(BaseApplication):
    """Gunicorn configured by our knobs alone: no command line, no configuration file."""

    def load_config(self) -> None:
        host, parent = conf().host, os.getpid()
        options: dict[str, Any] = {
            "bind": f"{f'[{host}]' if ':' in host else host}:{conf().port}",
            "workers": 1,
            "worker_class": "gthread",
            "threads": conf().web_threads,
            "preload_app": True,
            "timeout": 60,
            "graceful_timeout": int(max(1, conf().stop_seconds / 2)),
            "worker_tmp_dir": "/dev/shm" if os.access("/dev/shm", os.W_OK) else None,
            "control_socket_disable": True,
            "loglevel": "warning",
            "proc_name": "web",
            "when_ready": _say_ready,
            "post_fork": lambda arbiter, worker: proc.die_with_parent(parent),
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        return application


def _say_ready(arbiter: Arbiter) -> None:
    print(f"Ready: {address()}  (admin's password is in {settings.ADMIN_PASSWORD_FILE})", flush=True)  # noqa: T201


def run_web() -> None:
    """Serves until SIGTERM."""
    Server().run()
