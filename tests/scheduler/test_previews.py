"""What the page, the API, ``manage.py dags next`` and the loop say of the next runs is one thing (F-15)."""

from __future__ import annotations

import io
import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from scheduler_app.engine.run_plans import RunPlan, preview
from scheduler_app.models import DagModel, DagRun, db, schedules
from scheduler_app.queries import page_dag
from scheduler_app.timetables import from_doc
from tests.scheduler.scene import Scene
from tests.shapes import shape

#: Nights in which the clock of Berlin is put forward, and back.
FORWARD, BACK = datetime(2026, 3, 29, tzinfo=UTC), datetime(2026, 10, 25, tzinfo=UTC)
COUNT = 8


def a_timetable(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(["cron_trigger", "cron_trigger", "cron_interval", "delta_trigger", "delta_interval"])
    if kind.startswith("delta"):
        return {"kind": kind, "delta": rng.choice([1800.0, 5400.0])}
    timetable = {
        "kind": kind,
        "expression": rng.choice(["30 * * * *", "*/20 1-3 * * *", "15 2 * * *", "0 */2 * * *"]),
        "timezone": rng.choice(["UTC", "Europe/Berlin", "Europe/Berlin"]),
    }
    rules = {"gap": rng.choice([None, "skip", "next_valid"]), "overlap": rng.choice([None, "second", "both"])}
    return timetable | {name: value for name, value in rules.items() if value}


def a_dag(scene: Scene, rng: random.Random) -> DagModel:
    misfire = rng.choice([None, "skip", "latest", "all"])
    dag = scene.dag(
        shape("a", timetable=a_timetable(rng), catchup=rng.random() < 0.3, max_active_runs=1000),
        row={
            "start_date": scene.now - timedelta(hours=rng.choice([-2, 0, 5, 30])),
            "end_date": rng.choice([None, scene.now + timedelta(hours=9)]),
            "misfire_policy": misfire,
            "misfire_limit": 2 if misfire == "all" else None,
            "schedule_jitter": rng.choice([0.0, 0.0, 240.0]),
        },
    )
    schedules.plan_next(dag, scene.now)
    dag.save()
    return dag


def previewed(dag: DagModel, now: datetime) -> list[RunPlan]:
    return preview(from_doc(dag.timetable), schedules.schedule_facts(dag, now), COUNT)


def said() -> list[dict[str, Any]]:
    out = io.StringIO()
    call_command("dags", "--json", "next", "dag", "--count", str(COUNT), stdout=out)
    found: list[dict[str, Any]] = json.loads(out.getvalue())
    return found


def make_runs(scene: Scene, plans: list[RunPlan]) -> None:
    """The loop alone: time goes to each moment at which it says that a run is due. What it catches up it may make
    several at once."""
    before = DagRun.objects.count()
    while DagRun.objects.count() < before + len(plans):
        due = DagModel.objects.get(pk="dag").next_dagrun_run_after
        assert due is not None
        scene.now = max(scene.now, due)
        scene.phase("create_runs")


@pytest.mark.parametrize("seed", range(12))
def test_previews_and_the_loop_agree(scene: Scene, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    scene.now = rng.choice([FORWARD, BACK]) + timedelta(minutes=rng.randrange(-90, 90))
    dag = a_dag(scene, rng)
    monkeypatch.setattr(db, "clock", lambda: scene.now)
    for _ in range(2):  # before anything was made, and in the middle
        dag.refresh_from_db()
        plans = previewed(dag, scene.now)
        stored = (dag.next_dagrun_run_after, dag.next_dagrun_logical_date)
        if stored[0] is None or stored[0] > scene.now:  # else the loop looks again which of the missed ones to make
            assert stored == ((plans[0].due, plans[0].logical_date) if plans else (None, None))
        assert page_dag.coming(dag, scene.now, COUNT) == [plan.due for plan in plans]
        assert [datetime.fromisoformat(one["run_after"]) for one in said()] == [plan.due for plan in plans]
        before = set(DagRun.objects.values_list("pk", flat=True))
        make_runs(scene, plans)
        made = DagRun.objects.exclude(pk__in=before).order_by("pk")
        assert [(run.slot_key, run.run_after, run.logical_date) for run in made[: len(plans)]] == [
            (plan.slot_key, plan.due, plan.logical_date) for plan in plans
        ]
        scene.wait(rng.choice([0, 7200]))


def test_a_schedule_that_cannot_say_is_an_error_in_words(scene: Scene) -> None:
    scene.dag(shape("a", timetable={"kind": "cron_trigger", "expression": "61 * * * *"}))
    with pytest.raises(CommandError, match="The schedule of dag cannot say its next runs"):
        said()
