"""``manage.py rundagprocessor``: watch the DAG folder and run callbacks, until SIGTERM or Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from scheduler_app.dag_processor.process import run_dag_processor
from scheduler_app.management import long_running
from scheduler_app.management.database import DatabaseCommand


class Command(DatabaseCommand):
    help = "Reads the DAG files of the bundles that no other processor owns, and runs callbacks of DAGs and tasks."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--subdir", type=Path, help="only this folder or file")
        parser.add_argument(
            "--num-parses", type=int, default=0, help="stop when every file was parsed so often (default: never)"
        )
        parser.add_argument("--no-callbacks", action="store_true", help="leave callbacks to other processors")
        long_running.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        subdir: Path | None = options["subdir"]
        if subdir is not None and not subdir.exists():
            raise CommandError(f"{subdir} does not exist: give an existing folder or file with DAGs.")
        if options["num_parses"] < 0:
            raise CommandError("--num-parses must be 0 (never stop) or more.")
        with long_running.inspected(options):
            run_dag_processor(subdir=subdir, num_parses=options["num_parses"], callbacks=not options["no_callbacks"])
