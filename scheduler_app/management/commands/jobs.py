"""``manage.py jobs list|check``: which of our processes are alive; ``check`` is a probe with an exit code (F-01)."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from scheduler_app.conf import conf
from scheduler_app.management.command import Verbs
from scheduler_app.models import Job
from scheduler_app.models.job import JOB_TYPES


class Command(Verbs):
    help = "Looks at the scheduler's own processes."
    verbs = {
        "list": "the processes that run, or ran last",
        "check": "exit code 0 when enough processes of a type are alive, else 1",
    }

    def add_list(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--limit", type=int, default=20, help="how many, newest first")

    def add_check(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--job-type", choices=JOB_TYPES, default="SchedulerJob")
        parser.add_argument("--hostname", help="only processes on this host")
        parser.add_argument("--at-least", type=int, default=1, help="so many must be alive")

    def do_list(self, options: dict[str, Any]) -> None:
        jobs = Job.objects.order_by("-start_date", "-id")[: max(1, options["limit"])]
        self.show(
            [
                {
                    "id": job.pk,
                    "job_type": job.job_type,
                    "alive": job.is_alive(self.now, conf().lease_seconds),
                    "state": job.state,
                    "hostname": job.hostname,
                    "pid": job.pid,
                    "latest_heartbeat": job.latest_heartbeat,
                }
                for job in jobs
            ]
        )

    def do_check(self, options: dict[str, Any]) -> None:
        alive = Job.objects.alive(self.now, conf().lease_seconds).filter(job_type=options["job_type"])
        if options["hostname"]:
            alive = alive.filter(hostname=options["hostname"])
        count = alive.count()
        if count < options["at_least"]:
            raise CommandError(f"{count} {options['job_type']} alive, {options['at_least']} wanted.")
        self.stdout.write(f"{count} {options['job_type']} alive.")
