"""``manage.py tasks list|states|why|clear``."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError

from scheduler_app import access
from scheduler_app.actions.clear import clear
from scheduler_app.actions.selection import Wanted, chosen, graph_for
from scheduler_app.conf import conf
from scheduler_app.management.command import Verbs
from scheduler_app.queries import page_run, page_task, page_why


class Command(Verbs):
    help = "Looks at the tasks of a DAG and clears them."
    verbs = {
        "list": "the tasks of a DAG, in the order of their dependencies",
        "states": "the task instances of a run",
        "why": "what keeps a task instance from running, or the run when no task is named",
        "clear": "let task instances run again",
    }

    def add_list(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id")

    def add_states(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id")
        parser.add_argument("run_id")

    def add_why(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id")
        parser.add_argument("run_id")
        parser.add_argument("task_id", nargs="?")
        parser.add_argument("--map-index", type=int, default=None)

    def add_clear(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("dag_id")
        parser.add_argument("run_id")
        parser.add_argument("task_ids", nargs="*", help="all tasks when none is named")
        for name in ("upstream", "downstream", "past", "future", "only-failed"):
            parser.add_argument(f"--{name}", action="store_true")
        parser.add_argument("--dry-run", action="store_true", help="only show what would be cleared")

    def do_list(self, options: dict[str, Any]) -> None:
        dag = access.dags(self.actor).filter(pk=options["dag_id"]).first()
        graph = graph_for(dag) if dag is not None else None
        if graph is None:
            raise CommandError(
                f"There is no DAG {options['dag_id']!r}. `manage.py dags list` shows those that there are."
            )
        self.show(
            [
                {
                    "task_id": task_id,
                    "operator": graph.tasks[task_id].operator_name,
                    "trigger_rule": graph.tasks[task_id].trigger_rule,
                    "retries": graph.tasks[task_id].retries,
                    "pool": graph.tasks[task_id].pool,
                    "upstream": ", ".join(graph.upstream[task_id]),
                }
                for task_id in graph.order
            ]
        )

    def do_states(self, options: dict[str, Any]) -> None:
        self.show(_rows(chosen(self.actor, Wanted(options["dag_id"], runs=[options["run_id"]]))))

    def do_why(self, options: dict[str, Any]) -> None:
        dag_id, run_id, task_id = options["dag_id"], options["run_id"], options["task_id"]
        lease = timedelta(seconds=conf().lease_seconds)
        visible = access.task_instances(self.actor)
        if task_id is None:
            run = page_run.get_run(access.runs(self.actor), dag_id, run_id)
            found = page_why.why_run(run, self.now, lease, visible) if run is not None else None
        else:
            run = page_task.get_task(visible, dag_id, run_id, task_id, options["map_index"])
            found = page_why.why_task(run, self.now, lease, visible) if run is not None else None
        if run is None:
            raise CommandError(f"There is no such run or task. `manage.py tasks states {dag_id} {run_id}` shows them.")
        verdicts = [] if found is None else sorted(found.verdicts, key=lambda one: one is not found.headline)
        self.show([{"met": "yes" if one.ok else "no", "verdict": one.text} for one in verdicts])

    def do_clear(self, options: dict[str, Any]) -> None:
        wanted = Wanted(
            options["dag_id"],
            tasks=options["task_ids"] or None,
            runs=[options["run_id"]],
            upstream=options["upstream"],
            downstream=options["downstream"],
            past=options["past"],
            future=options["future"],
            only_failed=options["only_failed"],
        )
        if options["dry_run"]:
            self.show(_rows(chosen(self.actor, wanted)))
            return
        self.show(_rows(clear(self.actor, wanted, self.now).task_instances))


def _rows(task_instances: Any) -> list[dict[str, Any]]:
    return [
        {
            "run_id": row.dag_run.run_id,
            "task_id": row.task_id,
            "map_index": row.map_index,
            "state": row.state or "none",
            "try_number": row.try_number,
            "start_date": row.start_date,
            "end_date": row.end_date,
            "reason": (row.reason or "").splitlines()[0] if row.reason else "",
        }
        for row in task_instances
    ]
