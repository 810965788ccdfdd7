"""``manage.py runscheduler``: the scheduler's process (F-02)."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from scheduler_app.conf import conf
from scheduler_app.management import long_running
from scheduler_app.management.database import DatabaseCommand
from scheduler_app.scheduler.beside import Processor
from scheduler_app.scheduler.process import EXECUTORS, Options, run_scheduler


class Command(DatabaseCommand):
    help = "Creates due runs, decides which tasks may run, and hands them to executors, until SIGINT or SIGTERM."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--num-runs", type=int, default=-1, help="stop after so many passes of the loop")
        parser.add_argument("--subdir", help="folder of DAG files (default: SCHEDULER_DAGS_FOLDER)")
        parser.add_argument(
            "--num-times-parse-dags", type=int, default=-1, help="stop when every file was parsed so many times"
        )
        parser.add_argument("--idle-sleep", type=float, help="longest sleep between two passes, in seconds")
        parser.add_argument(
            "--executor",
            help="executors, separated by commas, the one of tasks that name none first; there are "
            + ", ".join(sorted(EXECUTORS)),
        )
        parser.add_argument(
            "--no-dag-processor", action="store_true", help="do not start a DAG processor beside the scheduler"
        )
        long_running.add_arguments(parser)
        parser.add_argument("--log-level", choices=["DEBUG", "INFO", "WARNING", "ERROR"], help="of the log lines")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["log_level"]:
            logging.getLogger("scheduler_app").setLevel(options["log_level"])
        if options["subdir"]:
            settings.SCHEDULER = {**settings.SCHEDULER, "dags_folder": options["subdir"]}
        wanted = replace(conf(), executor=options["executor"] or conf().executor)
        for name in wanted.executors:
            if name not in EXECUTORS:
                raise CommandError(f"There is no executor {name!r}; there are {', '.join(sorted(EXECUTORS))}.")
        broker = wanted.celery_broker_url or getattr(settings, "CELERY_BROKER_URL", "")
        if "CeleryExecutor" in wanted.executors and not broker:
            raise CommandError("The Celery executor needs a broker: set SCHEDULER_CELERY_BROKER_URL.")
        processor = Processor(
            wanted=not options["no_dag_processor"],
            subdir=options["subdir"],
            num_times=options["num_times_parse_dags"],
        )
        with long_running.inspected(options), processor:
            run_scheduler(
                Options(
                    num_runs=options["num_runs"],
                    idle_sleep_seconds=options["idle_sleep"],
                    executor=wanted.executor,
                    until=processor.is_over,
                )
            )
