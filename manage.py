#!/usr/bin/env python
"""The bundled project's command line. ``bin/run`` and ``bin/test`` make the environment that it needs."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_app.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError:
        sys.exit(f"{sys.executable} has no Django. Start bin/run once, then use .venv/bin/python manage.py …")
    from scheduler_app.management import database

    try:
        execute_from_command_line(sys.argv)
    except database.ERRORS as error:
        # of a command that is not ours
        told = database.advice(error)
        if told is None:
            raise
        sys.exit(told)


if __name__ == "__main__":
    main()
