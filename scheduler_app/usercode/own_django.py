"""The Django project of the user, for DAG files and tasks that want its models (``task_django_settings_module``).

It is set up once, before the file is imported; its connections are closed before a fork, so each attempt opens its own.
"""

from __future__ import annotations

import importlib
import os
import sys

VARIABLE = "SCHEDULER_TASK_DJANGO_SETTINGS_MODULE"


def set_up() -> None:
    """Raises what the project's settings and apps raise: that is then the file's error."""
    name = os.environ.get(VARIABLE)
    if not name:
        return
    os.environ["DJANGO_SETTINGS_MODULE"] = name
    # By name: this package knows no framework, the user's project does.
    importlib.import_module("django").setup()


def close_connections() -> None:
    """Those that the project opened while the file was imported: two processes must not talk on one."""
    database = sys.modules.get("django.db")
    if os.environ.get(VARIABLE) and database is not None:
        database.connections.close_all()
