"""The hot statements touch what is hot, with 10⁵ task instances around it: pages read, each within a stated budget.

A budget is a few index levels and the heap pages of the rows that the statement is about, with some slack for how the
rows lie; it grows with a row count only where a comment says which.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from scheduler_app.models import TaskInstance, facts, limit, locks, transitions
from scheduler_app.models import db as models_db
from scheduler_app.models.run import DagRun, Wake
from scheduler_app.runner import claims
from scheduler_app.scheduler import admission_pages, loop
from scheduler_app.scheduler.phases import (
    adopt_orphans,
    create_runs,
    enforce_timeouts,
    fail_lost_tasks,
    publish,
    queue_tasks,
    schedule_tasks,
    start_runs,
    sweep,
)
from tests.plans.conftest import DEFERRED, HOT, QUEUED, RUNNING, RUNNING_PER_DAG
from tests.rows import T0

pytestmark = pytest.mark.django_db

RUNS = HOT * RUNNING_PER_DAG
ACTIVE = RUNS * (QUEUED + RUNNING + DEFERRED)


def within(plan: Any, budget: int, rows: int | None = None) -> None:
    assert plan.buffers <= budget, f"{plan.buffers} pages, the budget is {budget}: {plan.text}"
    if rows is not None:
        assert plan.rows == rows, plan.text
    assert "Seq Scan scheduler_task_instance" not in plan.text
    assert "Seq Scan scheduler_dag_run" not in plan.text


def test_there_is_a_history_to_get_lost_in(plan: Any) -> None:
    assert TaskInstance.objects.count() >= 100_000


def test_the_probe_of_an_idle_tick(plan: Any, kept_plan: Any) -> None:
    for explain in (plan, kept_plan):
        within(explain(loop.PROBE, {"now": T0 - timedelta(days=1)}), 30, rows=1)


def test_taking_runs_by_their_wakes(plan: Any, kept_plan: Any) -> None:
    """2,000 wakes of 200 runs: the wakes' own pages, a few for each run that is taken, and three a wake."""
    params = {"after": 0, "window": schedule_tasks.WAKE_WINDOW, "limit": 100}
    for explain in (plan, kept_plan):
        within(explain(schedule_tasks._TAKE_RUNS, params), 160 + 10 * 100 + 3 * 1000, rows=100)


def test_S_59_the_first_page_of_admission_is_read_in_its_total_order_from_an_index(plan: Any, kept_plan: Any) -> None:
    """512 rows in the order of the index; here they lie side by side."""
    for explain in (plan, kept_plan):
        within(explain(admission_pages._FIRST_PAGE, {"limit": 512}), 120, rows=512)
        ready = list(TaskInstance.objects.filter(state=None).values_list("pk", flat=True)[:16])
        params = {"limit": 512, "ready": ready, "now": T0}
        within(explain(admission_pages._FIRST_PAGE_AND_READY, params), 120 + 16 * 5, rows=528)


def test_the_keys_behind_a_clogged_page(plan: Any) -> None:
    """A step in the index (and a look at the heap) for each of the 200 runs, none for the 40,000 rows in them."""
    params = {"pools": ["default_pool"], "limits": [""], "dags": [""], "runs": [0], "limit": 512}
    within(plan(admission_pages._KEYS, params), 6 * RUNS, rows=RUNS)


def test_the_sets_of_limits_behind_a_clogged_page(plan: Any) -> None:
    """Two steps in the index for the one set that the 40,000 rows have."""
    within(plan(admission_pages._SETS, {"pools": ["default_pool"]}), 40, rows=1)


def test_the_longest_waiting_of_each_priority(plan: Any) -> None:
    """A step for each of the seven priorities, and the rows that are asked for."""
    within(plan(admission_pages._WEIGHTS), 7 * 8, rows=7)
    within(plan(admission_pages._OLDEST, {"weights": list(range(7)), "each": 70}), 7 * (70 + 8), rows=490)


def test_what_is_taken_of_keyed_limits(plan: Any) -> None:
    within(plan(limit._IN_USE), 10, rows=0)


def test_those_that_go_on_after_a_deferral(plan: Any) -> None:
    within(plan(admission_pages._RESUMED, {"pools": ["default_pool"], "most": 4096}), 10, rows=0)


def test_the_rows_of_keys(plan: Any) -> None:
    runs = list(DagRun.objects.filter(state="running").order_by("pk").values_list("pk", "dag_id")[:10])
    params = {
        "pools": ["default_pool"] * 10,
        "limits": [""] * 10,
        "dags": [dag_id for _, dag_id in runs],
        "runs": [key for key, _ in runs],
        "widths": [1] * 10,
        "seen": [1, 2, 3],
        "full_in_dag": [],
        "full_in_run": [],
        "default": "LocalExecutor",
        "executors": ["LocalExecutor"],
        "now": T0,
        "rows": 64,
    }
    within(plan(admission_pages._OF_KEYS, params), 10 * (64 + 10), rows=640)


def test_the_runs_whose_tasks_may_be_handed_out(plan: Any) -> None:
    """A step down the index and a row, for the run and for its DAG: some five pages a run, and nothing else."""
    runs = list(DagRun.objects.filter(state="running").values_list("pk", flat=True))
    within(plan(admission_pages._OPEN_RUNS, {"runs": runs, "now": T0}), 6 * RUNS, rows=RUNS)


def test_counting_what_is_active(plan: Any, kept_plan: Any) -> None:
    """The index of the thousand active rows, and the pages on which they lie."""
    models_db.execute(locks.ADMISSION)
    for explain in (plan, kept_plan):
        within(explain(queue_tasks._IN_USE, {"job": 1}), 150, rows=ACTIVE + 1)


def test_the_outbox(plan: Any, kept_plan: Any) -> None:
    params = {"job": 1, "name": "LocalExecutor", "is_default": True, "names": ["LocalExecutor"], "limit": 512}
    for explain in (plan, kept_plan):
        within(explain(publish._OUTBOX, params), 40, rows=RUNS)


def test_what_is_open_in_some_runs(plan: Any) -> None:
    runs = list(DagRun.objects.filter(state="running").values_list("pk", flat=True)[:50])
    within(plan(schedule_tasks._OPEN, {"runs": runs}), 50 * 2 * 10, rows=50)


def test_what_is_open_in_finished_runs(plan: Any) -> None:
    runs = list(DagRun.objects.filter(state="success").values_list("pk", flat=True)[:50])
    within(plan(schedule_tasks._OPEN, {"runs": runs}), 50 * 2 * 3, rows=50)


def test_the_dags_that_are_due(plan: Any) -> None:
    """Twenty of a thousand are due; each is asked how many of its runs are unfinished."""
    within(plan(create_runs._TAKE, {"now": T0, "limit": 100}), 800, rows=19)


def test_the_dags_with_queued_runs(plan: Any) -> None:
    """A step for each of the twenty DAGs, not for each of the 600 queued runs."""
    within(plan(start_runs._LOCK_DAGS), 25 * HOT, rows=HOT)


def test_the_oldest_queued_runs(plan: Any) -> None:
    dags = [f"dag{number:05}" for number in range(HOT)]
    within(plan(start_runs._OLDEST, {"dags": dags, "now": T0, "limit": 512}), 25 * HOT, rows=6 * HOT)


@pytest.mark.parametrize(("verb", "state", "fenced"), [("queue", "scheduled", False), ("start", "queued", True)])
def test_a_move_of_500_rows(plan: Any, verb: str, state: str, fenced: bool) -> None:
    """Found by their keys: locked, updated, and their new versions entered into the indexes."""
    rows = list(TaskInstance.objects.filter(state=state).order_by("pk").values_list("pk", "fence")[:400])
    fences = [fence for _, fence in rows] if fenced else None
    sql, params = transitions._statement("task", verb, [key for key, _ in rows], T0, {}, fences, False)
    found = plan(sql, params)
    within(found, 45 * len(rows), rows=400)
    assert "ti_" not in found.text, f"a partial index was joined: {found.text}"


def test_lost_heartbeats(plan: Any) -> None:
    """The rows with a process, and no other: 400 of 10⁵."""
    within(
        plan(
            fail_lost_tasks._SILENT,
            {"before": T0 - timedelta(seconds=39), "ahead": T0 + timedelta(hours=1), "limit": 512},
        ),
        450,
        rows=200,
    )


def test_alarms_that_are_due(plan: Any) -> None:
    within(plan(enforce_timeouts._DUE, {"now": T0 + timedelta(minutes=4), "limit": 512}), 50, rows=5)


def test_deferrals_that_took_too_long(plan: Any) -> None:
    within(plan(enforce_timeouts._DEFERRED, {"now": T0 - timedelta(minutes=3), "limit": 512}), 40, rows=6)


def test_orphans(plan: Any) -> None:
    params = {"stuck_since": T0 - timedelta(hours=1), "limit": 512}
    within(plan(adopt_orphans._ORPHANS, params), 2 * RUNS * QUEUED, rows=RUNS * QUEUED)


def test_the_sweep(plan: Any) -> None:
    """It asks each running run, seldom: pages for 200 runs, none for the 19,000 finished ones."""
    DagRun.objects.filter(state="running").update(next_check_at=None)
    Wake.objects.all().delete()
    within(plan(sweep._FORGOTTEN, {"before": T0, "after": 0, "limit": 512}), 20 * RUNS, rows=0)


def _few(**filters: Any) -> list[int]:
    return list(TaskInstance.objects.filter(**filters).order_by("-pk").values_list("pk", flat=True)[:2])


@pytest.mark.parametrize(("verb", "state", "fenced"), [("queue", "scheduled", False), ("succeed", "running", True)])
def test_the_kept_plan_of_a_move(kept_plan: Any, verb: str, state: str, fenced: bool) -> None:
    ids = _few(state=state)
    sql, params = transitions._statement("task", verb, ids, T0, {}, [1] * len(ids) if fenced else None, fenced)
    within(kept_plan(sql, params), 80 * len(ids), rows=2)


def test_the_kept_plans_of_a_look(kept_plan: Any) -> None:
    """Two runs of 245 task instances each, and nothing of the others."""
    runs = list(DagRun.objects.filter(state="running").order_by("pk").values_list("pk", flat=True)[:2])
    within(kept_plan(facts._ALL_OF_RUNS, {"runs": runs, "now": T0}), 2 * 270, rows=2 * 245)
    some = {"task_runs": runs, "tasks": ["none1", "none2"], "now": T0}
    within(kept_plan(facts._SOME_TASKS, some), 2 * 10, rows=2)
    within(kept_plan(facts._LEAVES, some), 2 * 10, rows=2)
    within(kept_plan(schedule_tasks._OPEN, {"runs": runs}), 2 * 20, rows=2)
    within(kept_plan(admission_pages._OPEN_RUNS, {"runs": runs, "now": T0}), 2 * 8, rows=2)


def test_the_kept_plan_of_a_claim(kept_plan: Any) -> None:
    ids = _few(state="queued")
    sql, params = transitions._statement("task", "start", ids, T0, {}, [1, 1], False, then=claims._STARTED)
    within(kept_plan(sql, params), 90 * len(ids), rows=2)
