"""``manage.py backfills create|list|pause|unpause|cancel``: runs for past slots of a schedule (F-31)."""

from __future__ import annotations

import argparse
from typing import Any

from scheduler_app import access
from scheduler_app.actions import backfills
from scheduler_app.management.command import Verbs, instant, json_object
from scheduler_app.models import Backfill
from scheduler_app.models.backfill import REPROCESS


class Command(Verbs):
    help = "Makes and steers backfills."
    verbs = {
        "create": "runs for every slot of a range that is past",
        "list": "the backfills that there are, newest first",
        "pause": "start no more of its runs for now",
        "unpause": "go on with its runs",
        "cancel": "end it: runs that have not started fail",
    }

    def add_create(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id")
        parser.add_argument("--from-date", type=instant, required=True, help="first logical date")
        parser.add_argument("--to-date", type=instant, required=True, help="last logical date")
        parser.add_argument("--dry-run", action="store_true", help="only show the slots that would be run")
        parser.add_argument("--run-backwards", action="store_true", help="the latest slot first")
        parser.add_argument("--max-active-runs", type=int, default=10, help="runs under way at a time (default: 10)")
        parser.add_argument("--dag-run-conf", type=json_object, default={}, help="conf of the runs, a JSON object")
        parser.add_argument(
            "--reprocess-behavior",
            choices=REPROCESS,
            default="none",
            help="slots that have a run: leave them, or run them again if they failed or are over (default: none)",
        )

    def add_list(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id", nargs="?", help="only of this DAG")
        parser.add_argument("--limit", type=int, default=20)

    def add_pause(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("backfill_id", type=int)

    add_unpause = add_cancel = add_pause

    def do_create(self, options: dict[str, Any]) -> None:
        wanted = backfills.Wanted(
            options["dag_id"],
            options["from_date"],
            options["to_date"],
            reprocess_behavior=options["reprocess_behavior"],
            reverse=options["run_backwards"],
            max_active_runs=options["max_active_runs"],
            conf=options["dag_run_conf"],
        )
        if options["dry_run"]:
            plans = backfills.preview(self.actor, wanted, self.now)
            self.show([{"logical_date": plan.logical_date, "run_after": plan.run_after} for plan in plans])
        else:
            self._show([backfills.create(self.actor, wanted, self.now)])

    def do_list(self, options: dict[str, Any]) -> None:
        rows = Backfill.objects.filter(dag__in=access.dags(self.actor))
        if options["dag_id"]:
            rows = rows.filter(dag_id=options["dag_id"])
        self._show(list(rows.order_by("-id")[: max(1, options["limit"])]))

    def do_pause(self, options: dict[str, Any]) -> None:
        self._show([backfills.set_paused(self.actor, options["backfill_id"], True, self.now)])

    def do_unpause(self, options: dict[str, Any]) -> None:
        self._show([backfills.set_paused(self.actor, options["backfill_id"], False, self.now)])

    def do_cancel(self, options: dict[str, Any]) -> None:
        self._show([backfills.cancel(self.actor, options["backfill_id"], self.now)])

    def _show(self, rows: list[Backfill]) -> None:
        self.show(
            [
                {
                    "id": row.pk,
                    "dag_id": row.dag_id,
                    "from_date": row.from_date,
                    "to_date": row.to_date,
                    "max_active_runs": row.max_active_runs,
                    "reprocess": row.reprocess_behavior,
                    "paused": row.is_paused,
                    "completed_at": row.completed_at,
                    "error": row.error,
                }
                for row in rows
            ]
        )
