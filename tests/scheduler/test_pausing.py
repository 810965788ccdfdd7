"""A DAG whose last runs all failed is paused, by the scheduler, with its reason (max_consecutive_failed_dag_runs)."""

from __future__ import annotations

from contextlib import suppress

from scheduler_app.models import Audit, DagModel, DagRun, DagWake, db
from scheduler_app.scheduler.phases import pause_failing
from tests.rows import at, trigger
from tests.scheduler.scene import Scene
from tests.shapes import shape


def failing(scene: Scene, limit: int) -> DagModel:
    return scene.dag(shape("a"), row={"max_consecutive_failed_dag_runs": limit})


def is_paused() -> bool:
    return DagModel.objects.values_list("is_paused", flat=True).get()


def test_a_dag_is_paused_after_so_many_failed_runs_in_a_row(scene: Scene) -> None:
    dag = failing(scene, 2)
    for number, state in enumerate(["failed", "success", "failed", "failed"]):
        assert not is_paused(), number
        scene.wait(1)
        scene.play(trigger(dag, 1, now=scene.now, prefix=f"r{number}_")[0], a=state)
    scene.settle()
    assert is_paused()
    audit = Audit.objects.get()
    assert (audit.event, audit.actor_kind, audit.dag_id) == ("patch_dag", "scheduler", "dag")
    assert (audit.before, audit.after) == ({"is_paused": False}, {"is_paused": True})
    assert audit.reason == "Its last 2 runs failed (max_consecutive_failed_dag_runs=2). Mend it, then unpause it."
    assert not DagWake.objects.exists()


def test_runs_are_the_last_by_what_they_are_about_not_by_when_they_ended(scene: Scene) -> None:
    dag = failing(scene, 2)
    old, good, bad = (scene.runs(dag, 1, prefix=f"r{n}_", logical_date=at(3600 * n))[0] for n in range(-3, 0))
    scene.play(good)
    scene.play(bad, a="failed")
    scene.play(old, a="failed")
    scene.settle()
    assert not is_paused()


def test_a_dag_that_a_person_unpaused_goes_on_until_its_next_failure(scene: Scene) -> None:
    dag = failing(scene, 1)
    scene.play(scene.runs(dag, 1, prefix="one")[0], a="failed")
    scene.settle()
    assert is_paused()
    DagModel.objects.update(is_paused=False)
    scene.settle()
    assert not is_paused()


def test_I9_the_end_of_a_run_locks_no_dag_and_writes_that_its_dag_is_due(scene: Scene) -> None:
    run = scene.run(failing(scene, 1))
    scene.tick()
    scene.begin(scene.task(run, "a"))
    scene.end(scene.task(run, "a"), state="failed")
    scene.phase("schedule_tasks")
    assert (DagRun.objects.get().state, is_paused()) == ("failed", False)
    assert list(DagWake.objects.values_list("dag_id", "reason")) == [("dag", "run_failed")]
    with suppress(InterruptedError), db.atomic():
        pause_failing.run(scene.a_tick())
        raise InterruptedError  # killed before the commit: the wake is still there
    assert (is_paused(), DagWake.objects.count()) == (False, 1)
    scene.phase("pause_failing")
    assert (is_paused(), DagWake.objects.count()) == (True, 0)


def test_wakes_of_a_dag_that_was_deleted_are_dropped(scene: Scene) -> None:
    DagWake.objects.create(dag_id="gone", reason="run_failed", created_at=scene.now)
    scene.settle()
    assert not DagWake.objects.exists()
