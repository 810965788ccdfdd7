"""``manage.py dags list|show|next|trigger|pause|unpause``."""

from __future__ import annotations

import argparse
from typing import Any

from django.core.management.base import CommandError

from scheduler_app import access
from scheduler_app.actions.pause import set_paused
from scheduler_app.actions.trigger import trigger_run
from scheduler_app.engine.run_plans import preview
from scheduler_app.management.command import Verbs, instant, json_object
from scheduler_app.models import DagModel, schedules
from scheduler_app.timetables import from_doc

#: Columns that say nothing to a person.
_INNER = ("timetable", "schedule_hash", "missed_scans", "latest_version_id")


class Command(Verbs):
    help = "Looks at DAGs, triggers and pauses them."
    verbs = {
        "list": "the DAGs that files define",
        "show": "what is known of one DAG",
        "next": "the next runs that its schedule will create",
        "trigger": "start a run now",
        "pause": "create and start no more runs",
        "unpause": "let it run",
    }

    def add_list(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--stale", action="store_true", help="also those whose file is gone")

    def add_show(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id")

    def add_next(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id")
        parser.add_argument("--count", type=int, default=5, help="how many (at most 1000)")

    def add_trigger(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id")
        parser.add_argument("--run-id", help="an id of your own")
        parser.add_argument("--logical-date", type=instant, help="ISO 8601; none by default")
        parser.add_argument("--conf", type=json_object, default={}, help="params of the run, a JSON object")
        parser.add_argument("--note")

    add_pause = add_unpause = add_show

    def do_list(self, options: dict[str, Any]) -> None:
        dags = access.dags(self.actor).order_by("dag_id")
        if not options["stale"]:
            dags = dags.filter(is_stale=False)
        self.show(
            [
                {
                    "dag_id": dag.dag_id,
                    "paused": dag.is_paused,
                    "schedule": dag.timetable_summary,
                    "next_run": dag.next_dagrun_run_after,
                    "owners": dag.owners,
                    "file": dag.relative_fileloc,
                }
                for dag in dags.iterator(500)
            ]
        )

    def do_show(self, options: dict[str, Any]) -> None:
        dag = self._dag(options["dag_id"])
        names = [
            field.attname
            for field in DagModel._meta.concrete_fields
            if not field.attname.startswith(("last_slot", "held_"))
            and field.attname not in ("timetable", "schedule_hash")
        ]
        self.show([{"field": name, "value": getattr(dag, name)} for name in names])

    def do_next(self, options: dict[str, Any]) -> None:
        dag = self._dag(options["dag_id"])
        try:
            timetable = from_doc(dag.timetable or {"kind": "null"})
            if not timetable.can_be_scheduled:
                text = timetable.summary or "it is started by hand"
                raise CommandError(f"{dag.dag_id} has no schedule in time: {text}.")
            plans = preview(timetable, schedules.schedule_facts(dag, self.now), min(options["count"], 1000))
        except ValueError as error:
            raise CommandError(f"The schedule of {dag.dag_id} cannot say its next runs: {error}") from error
        self.show(
            [
                {
                    "run_after": plan.due,
                    "logical_date": plan.logical_date,
                    "data_interval_start": plan.data_interval_start,
                    "data_interval_end": plan.data_interval_end,
                }
                for plan in plans
            ]
        )

    def do_trigger(self, options: dict[str, Any]) -> None:
        run = trigger_run(
            self.actor,
            options["dag_id"],
            self.now,
            run_id=options["run_id"],
            logical_date=options["logical_date"],
            conf=options["conf"],
            note=options["note"],
            triggered_by="cli",
        )
        self.show([{"dag_id": run.dag_id, "run_id": run.run_id, "state": run.state, "logical_date": run.logical_date}])

    def do_pause(self, options: dict[str, Any]) -> None:
        self._set_paused(options, True)

    def do_unpause(self, options: dict[str, Any]) -> None:
        self._set_paused(options, False)

    def _set_paused(self, options: dict[str, Any], paused: bool) -> None:
        dag = set_paused(self.actor, options["dag_id"], paused, self.now)
        self.show([{"dag_id": dag.dag_id, "paused": dag.is_paused}])

    def _dag(self, dag_id: str) -> DagModel:
        dag = access.dags(self.actor).filter(pk=dag_id).first()
        if dag is None:
            raise CommandError(f"There is no DAG {dag_id!r}. `manage.py dags list` shows those that there are.")
        return dag
