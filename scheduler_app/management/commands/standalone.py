"""``manage.py standalone``: everything in one command. ``bin/run`` prepares the home folder and calls it."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler_app.embedded_db import EmbeddedError
from scheduler_app.standalone.prepare import NotPossible
from scheduler_app.standalone.start import run_standalone


class Command(BaseCommand):
    help = "Runs the database (unless DATABASE_URL is set), the scheduler, the DAG processor and the web server."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            sys.exit(run_standalone())
        except (EmbeddedError, NotPossible) as error:
            raise CommandError(str(error)) from error
