"""``manage.py runtriggerer``: wait on behalf of deferred tasks, until SIGTERM or Ctrl-C."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from scheduler_app.triggerer.process import run_triggerer


class Command(BaseCommand):
    help = (
        "Runs the triggers of deferred tasks, thousands of them in few processes. Any number of triggerers share them."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        run_triggerer()
