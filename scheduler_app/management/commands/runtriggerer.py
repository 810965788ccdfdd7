"""``manage.py runtriggerer``: wait on behalf of deferred tasks, until SIGTERM or Ctrl-C."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from scheduler_app.management import long_running
from scheduler_app.management.database import DatabaseCommand
from scheduler_app.triggerer.process import run_triggerer


class Command(DatabaseCommand):
    help = (
        "Runs the triggers of deferred tasks, thousands of them in few processes. Any number of triggerers share them."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        long_running.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        with long_running.inspected(options):
            run_triggerer()
