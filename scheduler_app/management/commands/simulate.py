"""``manage.py simulate --days N``: what would run when, and which limit makes it wait. Nothing is changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.core.management.base import CommandError

from scheduler_app import access
from scheduler_app.conf import conf
from scheduler_app.engine.forecast import Timed, TooMuch, forecast
from scheduler_app.management.command import Report
from scheduler_app.queries import forecasts


class Command(Report):
    help = "Plays DAGs, pools and limits forward on a virtual clock: tasks take what they usually take, and succeed."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("dag_ids", nargs="*", metavar="DAG_ID", help="only these DAGs, also when they are paused")
        parser.add_argument("--days", type=float, default=1.0, help="how far to look ahead (default: 1)")
        parser.add_argument("--by", choices=["dag", "run", "task"], default="run", help="a line for each of these")
        parser.add_argument("--slots", type=int, help="slots of the executors (default: SCHEDULER_PARALLELISM)")
        parser.add_argument(
            "--task-seconds", type=float, default=60.0, help="for tasks that never succeeded yet (default: 60)"
        )

    def run(self, options: dict[str, Any]) -> None:
        dags = access.dags(self.actor).filter(is_stale=False)
        wanted = options["dag_ids"]
        dags = dags.filter(pk__in=wanted) if wanted else dags.filter(is_paused=False)
        missing = sorted(set(wanted) - set(dags.values_list("pk", flat=True)))
        if missing:
            raise CommandError(f"There is no DAG {missing[0]!r}. `manage.py dags list` shows those that there are.")
        if options["days"] <= 0:
            raise CommandError("--days is a number above 0.")
        until = self.now + timedelta(days=options["days"])
        planned = forecasts.planned(dags.order_by("pk"), self.now, until, options["task_seconds"])
        slots = conf().parallelism if options["slots"] is None else options["slots"]
        try:
            found = forecast(
                planned,
                forecasts.pool_slots(),
                slots,
                forecasts.limits(),
                now=self.now,
                max_active_tasks_per=conf().max_active_tasks_per,
                wide_after_seconds=conf().wide_task_wait_seconds,
                ageing_seconds=conf().priority_ageing_seconds,
            )
        except TooMuch as error:
            raise CommandError(str(error)) from error
        if not found and not self.as_json:
            whose = "these DAGs" if wanted else "an unpaused DAG (name others to see theirs)"
            self.stdout.write(f"No schedule of {whose} has a run until {until:%Y-%m-%d %H:%M} UTC.")
            return
        self.show({"dag": _by_dag, "run": _by_run, "task": _by_task}[options["by"]](found))


def _by_task(found: Iterable[Timed]) -> list[dict[str, Any]]:
    return [{"dag": one.dag_id, "slot": one.slot, "task": one.task_id, **_times(one)} for one in found if one.task_id]


def _by_run(found: Iterable[Timed]) -> list[dict[str, Any]]:
    """Each run with all that it and its tasks waited for."""
    rows = list(found)
    waits: dict[tuple[str, Any], dict[str, float]] = {}
    for one in rows:
        mine = waits.setdefault((one.dag_id, one.slot), {})
        for code, seconds in one.waits.items():
            mine[code] = mine.get(code, 0.0) + seconds
    for one in rows:
        one.waits = waits[one.dag_id, one.slot]
    return [{"dag": one.dag_id, "slot": one.slot, **_times(one)} for one in rows if one.task_id is None]


def _by_dag(found: Iterable[Timed]) -> list[dict[str, Any]]:
    rows = list(found)
    by_dag: dict[str, list[Timed]] = {}
    for one in rows:
        by_dag.setdefault(one.dag_id, []).append(one)
    lines = []
    for dag_id, own in sorted(by_dag.items()):
        whole = Timed(dag_id, own[0].slot, None, own[0].ready_at)
        for one in own:
            for code, seconds in one.waits.items():
                whole.waits[code] = whole.waits.get(code, 0.0) + seconds
        whole.started_at = min((one.started_at for one in own if one.started_at), default=None)
        whole.ended_at = max((one.ended_at for one in own if one.ended_at), default=None)
        lines.append({"dag": dag_id, "runs": sum(one.task_id is None for one in own), **_times(whole)})
    return lines


def _times(one: Timed) -> dict[str, Any]:
    return {
        "starts": one.started_at or ("missed" if one.missed else "never"),
        "ends": one.ended_at or ("missed" if one.missed else "never"),
        "waits_seconds": round(one.waited_seconds, 1),
        "bound_by": one.bound_by,
    }
