"""Two real connections at once: limits hold, nothing starts twice, no open transaction stops the loop (I1, I2, I9).

Threads meet at a barrier *before* they commit, so that each works while the other's transaction is open.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.test import TransactionTestCase

from scheduler_app import access, metrics
from scheduler_app.actions import backfills, hold, limits
from scheduler_app.actions.assets import create_event
from scheduler_app.models import (
    Asset,
    AssetEvent,
    AssetQueuedEvent,
    Callback,
    DagModel,
    DagRun,
    Deadline,
    Limit,
    Pool,
    TaskInstance,
    Wake,
    db,
    schedules,
)
from scheduler_app.runner import claims
from scheduler_app.scheduler.loop import PHASES, Loop, Phase
from scheduler_app.scheduler.phases import schedule_tasks
from tests.scheduler import test_partitions
from tests.scheduler.scene import Scene
from tests.shapes import parallel, shape
from tests.simulation.play import TABLES

#: Longest that a thread may take; nothing here waits for it.
PATIENCE = 20.0
pytestmark = pytest.mark.django_db(transaction=True)
RUN = {phase.name: phase.run for phase in PHASES}


@pytest.fixture(autouse=True, scope="module")
def _rows_are_deleted() -> Iterator[None]:
    """Rows are committed here. Deleting the few there are takes a tenth of what emptying every table does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda _: _delete_rows())
        yield


def _delete_rows() -> None:
    AssetEvent.created_dagruns.through.objects.all().delete()
    for model in (AssetQueuedEvent, AssetEvent, Asset):
        model.objects.all().delete()
    for table in TABLES:
        db.execute(f"DELETE FROM {table}")
    Pool.objects.exclude(pool="default_pool").delete()
    Pool.objects.update(slots=128)


@pytest.fixture
def scene(transactional_db: None) -> Scene:
    return Scene()


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Runs each in a thread with a connection of its own; their results, in order. The first error is raised."""
    results: list[Any] = [None] * len(jobs)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            results[number] = jobs[number]()
        except BaseException as error:
            errors.append(error)
        finally:
            db.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread waits for a lock"
    if errors:
        raise errors[0]
    return results


def both(scene: Scene, phase: str) -> list[int]:
    """Two schedulers run a phase at the same instant; both have worked before either commits."""
    barrier = threading.Barrier(2, timeout=PATIENCE)
    schedulers = [scene.job, scene.new_job()]

    def one(number: int) -> int:
        with db.atomic():
            changed = RUN[phase](scene.a_tick(schedulers[number]))
            barrier.wait()
        return changed

    return together(lambda: one(0), lambda: one(1))


@contextmanager
def somebody_holds(sql: str, *params: Any) -> Iterator[None]:
    """Another connection holds the locks of a statement for the time of the block."""
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with db.atomic():
                db.fetch(sql, params)
                held.set()
                assert done.wait(PATIENCE)
        finally:
            db.close()

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(PATIENCE)
        yield
    finally:
        done.set()
        thread.join(PATIENCE)


def test_BC_19_S_31_S_32_two_schedulers_start_no_more_runs_than_may_be_active(scene: Scene) -> None:
    dag = scene.dag(shape("a", max_active_runs=1))
    runs = scene.runs(dag, 10)
    assert sorted(both(scene, "start_runs")) == [0, 1]
    assert scene.run_states(dag) == ["running"] + ["queued"] * 9
    assert both(scene, "start_runs") == [0, 0]
    runs[0].refresh_from_db()
    assert runs[0].state == "running"


def test_S_32_a_run_that_comes_before_the_one_that_is_being_started_does_not_start_beside_it(scene: Scene) -> None:
    """Somebody triggers a run for an earlier time while another scheduler's start is not committed yet: that scheduler
    has counted none, and this one would find a run that nobody has locked."""
    dag = scene.dag(shape("a", max_active_runs=1))
    scene.runs(dag, 1)
    started, done = threading.Event(), threading.Event()

    def start_the_first() -> int:
        with db.atomic():
            changed = RUN["start_runs"](scene.a_tick())
            started.set()
            assert done.wait(PATIENCE)
        return changed

    def start_another() -> int:
        assert started.wait(PATIENCE)
        try:
            scene.runs(dag, 5, prefix="earlier")
            return scene.phase("start_runs", job=scene.new_job())
        finally:
            done.set()

    assert together(start_the_first, start_another) == [1, 0]
    assert sorted(scene.run_states(dag)) == ["queued"] * 5 + ["running"]


def test_two_schedulers_start_the_runs_of_different_dags_side_by_side(scene: Scene) -> None:
    dags = [scene.dag(shape("a", f"d{number}", max_active_runs=2)) for number in range(6)]
    for dag in dags:
        scene.runs(dag, 4)
    assert sum(both(scene, "start_runs")) == 12
    assert [scene.run_states(dag).count("running") for dag in dags] == [2] * 6


def test_BC_127_two_schedulers_create_one_run_of_one_slot(scene: Scene) -> None:
    for number in range(5):
        dag = scene.dag(
            shape("a", f"d{number}", timetable={"kind": "cron_trigger", "expression": "0 * * * *"}),
            row={"start_date": scene.now},
        )
        schedules.plan_next(dag, scene.now)
        dag.save()
    assert sum(both(scene, "create_runs")) == 5
    assert list(DagRun.objects.order_by("dag_id").values_list("dag_id", flat=True)) == [f"d{n}" for n in range(5)]
    assert TaskInstance.objects.count() == 5


def test_BC_103_two_schedulers_make_one_run_of_one_event(scene: Scene) -> None:
    document = {"kind": "asset", "condition": {"asset": {"name": "x", "uri": "x://x"}}}
    asset = Asset.objects.create(name="x", uri="x://x", created_at=scene.now, updated_at=scene.now)
    event = AssetEvent.objects.create(asset=asset, timestamp=scene.now)
    for number in range(3):
        dag = scene.dag(shape("a", f"d{number}", timetable=document))
        AssetQueuedEvent.objects.create(dag=dag, asset=asset, event=event, created_at=scene.now)
    assert sum(both(scene, "create_asset_runs")) == 3
    assert list(DagRun.objects.order_by("dag_id").values_list("dag_id", flat=True)) == ["d0", "d1", "d2"]
    assert not AssetQueuedEvent.objects.exists()


def test_BC_105_two_schedulers_make_one_run_of_one_partition(scene: Scene) -> None:
    for number in range(3):
        test_partitions.waiting(scene, "a", "b", dag_id=f"d{number}")
    for name in ("a", "b"):
        asset = test_partitions.asset(name)
        create_event(access.system("command", "test"), asset.pk, scene.now, partition_key="2026-03-01")
    both(scene, "create_asset_runs")
    both(scene, "create_asset_runs")
    made = DagRun.objects.order_by("dag_id").values_list("dag_id", "partition_key")
    assert list(made) == [(f"d{number}", "2026-03-01") for number in range(3)]


def test_I2_two_schedulers_give_out_no_more_slots_than_there_are(scene: Scene) -> None:
    scene.pool("five", 5)
    scene.run(scene.dag(parallel(12, tasks={"*": {"pool": "five"}})))
    scene.phase("start_runs", "schedule_tasks")
    busy = metrics.CRITICAL_SECTION_BUSY._value.get()
    assert sorted(both(scene, "queue_tasks")) == [0, 5]
    assert metrics.CRITICAL_SECTION_BUSY._value.get() == busy + 1
    assert both(scene, "queue_tasks") == [0, 0]
    assert scene.counts() == {"queued": 5, "scheduled": 7}


def test_the_scheduler_that_found_admission_busy_comes_back_soon(scene: Scene) -> None:
    scene.run("a")
    scene.phase("start_runs", "schedule_tasks")
    with somebody_holds("SELECT pg_advisory_xact_lock('scheduler_task_instance'::regclass::oid::int, 1)"):
        tick = scene.a_tick()
        with db.atomic():
            assert RUN["queue_tasks"](tick) == 0
        assert tick.again
    assert scene.phase("queue_tasks") == 1


def test_two_schedulers_look_at_different_runs(scene: Scene) -> None:
    scene.runs(scene.dag("a"), 8)
    scene.phase("start_runs")
    scene.limit = 4
    assert both(scene, "schedule_tasks") == [4, 4]
    assert scene.counts() == {"scheduled": 8}
    assert not Wake.objects.exists()


def test_I1_two_workers_with_the_same_hand_out_start_it_once(scene: Scene) -> None:
    run = scene.run(scene.dag(parallel(8)))
    scene.tick()
    rows = list(TaskInstance.objects.order_by("pk"))
    worker = claims.Worker(0, "host", "user")

    def claim() -> list[int]:
        ids, fences = [row.pk for row in rows], [row.fence for row in rows]
        return [one.ti_id for one in claims.claim(ids, fences, scene.now, worker)]

    first, second = together(claim, claim)
    assert sorted(first + second) == [row.pk for row in rows]
    assert list(TaskInstance.objects.filter(dag_run=run).values_list("state", "try_number").distinct()) == [
        ("running", 1)
    ]


def test_a_wake_that_commits_during_a_look_is_there_for_the_next(scene: Scene) -> None:
    run = scene.run("a >> b")
    scene.tick()
    task = scene.task(run, "a")
    scene.begin(task)
    Wake.objects.add([run.pk], "alarm", scene.now)
    with db.atomic():
        RUN["schedule_tasks"](scene.a_tick())
        together(lambda: scene.end(task))
    assert list(Wake.objects.values_list("task_id", "reason")) == [("a", "task_ended")]
    scene.phase("schedule_tasks")
    assert scene.states(run) == {"a": "success", "b": "scheduled"}


def test_I9_a_run_that_somebody_holds_waits_and_the_others_go_on(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its wakes alone fill the window (BC-133)."""
    monkeypatch.setattr(schedule_tasks, "WAKE_WINDOW", 3)
    held, other = scene.runs(scene.dag("a"), 2)
    scene.phase("start_runs")
    Wake.objects.all().delete()
    Wake.objects.add([held.pk] * 7, "task_ended", scene.now)
    Wake.objects.add([other.pk], "task_ended", scene.now)
    with somebody_holds("SELECT id FROM scheduler_dag_run WHERE id = %s FOR UPDATE", held.pk):
        assert scene.phase("schedule_tasks") == 1
        assert (scene.states(held), scene.states(other)) == ({"a": None}, {"a": "scheduled"})
        assert Wake.objects.filter(dag_run=held).count() == 7
    scene.phase("schedule_tasks")
    assert scene.states(held) == {"a": "scheduled"}


def test_I9_a_foreign_key_lock_of_an_open_transaction_holds_nothing_up(scene: Scene) -> None:
    """What an application does that starts a workflow inside its own transaction.atomic()."""
    run = scene.run("a")
    with somebody_holds(
        "SELECT d.dag_id FROM scheduler_dag d JOIN scheduler_dag_run r USING (dag_id) FOR KEY SHARE OF d, r"
    ):
        scene.tick()
    assert scene.states(run) == {"a": "queued"}


@pytest.mark.parametrize("limit", [1, 2])
def test_BC_21_the_oldest_queued_run_is_not_overtaken_while_somebody_holds_it(scene: Scene, limit: int) -> None:
    """Also where there is room for the one behind it."""
    dag = scene.dag(shape("a", max_active_runs=limit))
    oldest, *_ = scene.runs(dag, 3)
    other = scene.run(scene.dag(shape("a", "other")))
    with somebody_holds("SELECT id FROM scheduler_dag_run WHERE id = %s FOR UPDATE", oldest.pk):
        assert scene.phase("start_runs") == 1
        assert scene.run_states(dag) == ["queued"] * 3
        other.refresh_from_db()
        assert other.state == "running"
    assert scene.phase("start_runs") == limit
    assert scene.run_states(dag) == ["running"] * limit + ["queued"] * (3 - limit)


def test_I2_two_schedulers_hand_out_no_more_of_a_limit_or_a_rate_than_there_is(scene: Scene) -> None:
    Limit.objects.create(name="warehouse", amount=3)
    Limit.objects.create(name="crm", amount=2, per_seconds=60.0)
    for name in ("warehouse", "crm"):
        scene.run(scene.dag(parallel(6, name, tasks={"*": {"limits": ({"name": name},)}})))
    scene.phase("start_runs", "schedule_tasks")
    assert sorted(both(scene, "queue_tasks")) == [0, 5]
    assert both(scene, "queue_tasks") == [0, 0]
    assert (scene.counts(dag_id="warehouse"), scene.counts(dag_id="crm")) == (
        {"queued": 3, "scheduled": 3},
        {"queued": 2, "scheduled": 4},
    )


def test_S_60_a_limit_is_edited_while_an_admission_is_open(scene: Scene) -> None:
    Limit.objects.create(name="crm", amount=2, per_seconds=60.0)
    scene.run(scene.dag(parallel(3, tasks={"*": {"limits": ({"name": "crm"},)}})))
    scene.phase("start_runs", "schedule_tasks")
    with db.atomic():
        assert RUN["queue_tasks"](scene.a_tick()) == 2
        (row,) = together(lambda: limits.change(access.system("person", "ann"), "crm", scene.now, amount=9))
        assert row.amount == 9
    assert scene.phase("queue_tasks") == 1


def test_S_60_a_pool_is_edited_while_an_admission_is_open(scene: Scene) -> None:
    scene.run("a")
    scene.phase("start_runs", "schedule_tasks")

    def edit() -> int:
        with db.atomic():
            db.execute("SET LOCAL lock_timeout = '5s'")
            return Pool.objects.filter(pool="default_pool").update(slots=7)

    with db.atomic():
        RUN["queue_tasks"](scene.a_tick())
        assert together(edit) == [1]
    assert scene.counts() == {"queued": 1}


def test_BC_43_an_executors_word_about_a_row_that_is_held_is_heard_afterwards(scene: Scene) -> None:
    run = scene.run(scene.dag("a", tasks={"a": {"retries": 1}}))
    scene.tick()
    task = scene.task(run, "a")
    scene.begin(task)
    scene.die(task)
    with somebody_holds("SELECT id FROM scheduler_task_instance WHERE id = %s FOR UPDATE", task.pk):
        db.execute("SET lock_timeout = '50ms'")
        assert scene.phase("sync_executors") == 0
    assert scene.states(run) == {"a": "running"}
    assert scene.phase("sync_executors") == 1
    assert scene.states(run) == {"a": "up_for_retry"}


def test_BC_65_S_29_a_deadlock_ends_no_phase_for_good(scene: Scene) -> None:
    """Two transactions that lock two rows crosswise: one of them is refused, and comes through the next time."""
    scene.run("a; b")
    first, second = TaskInstance.objects.order_by("pk").values_list("pk", flat=True)
    barrier = threading.Barrier(2, timeout=PATIENCE)
    lock = "SELECT 1 FROM scheduler_task_instance WHERE id = %s FOR NO KEY UPDATE"
    meets = {"meet": True}

    def crosswise(order: tuple[int, int]) -> Callable[[Any], int]:
        def run(_: Any) -> int:
            db.fetch(lock, [order[0]])
            if meets["meet"]:
                barrier.wait()
            db.fetch(lock, [order[1]])
            return 1

        return run

    loop = Loop(())
    phases = [Phase("sweep", crosswise(order)) for order in ((first, second), (second, first))]
    assert sorted(together(*(lambda p=p: loop.run_phase(p, scene.a_tick()) for p in phases))) == [0, 1]
    meets["meet"] = False
    assert [loop.run_phase(phase, scene.a_tick()) for phase in phases] == [1, 1]


def test_S_29_a_lost_connection_ends_no_phase_for_good(scene: Scene) -> None:
    run = scene.run("a")

    def cut(_: Any) -> int:
        db.fetch("SELECT pg_terminate_backend(pg_backend_pid())")
        return 1

    loop = Loop(())
    assert loop.run_phase(Phase("sweep", cut), scene.a_tick()) == 0
    scene.tick()
    assert scene.states(run) == {"a": "queued"}


@pytest.mark.parametrize("what", ["run", "task"])
def test_a_hold_wins_over_the_admission_of_the_same_moment(scene: Scene, what: str) -> None:
    """The admission is made and not committed when somebody holds the run: what it handed out is taken back."""
    run = scene.run("a")
    scene.phase("start_runs", "schedule_tasks")
    admitted = threading.Event()
    ann = access.system("person", "ann")

    def admit() -> None:
        with db.atomic():
            assert RUN["queue_tasks"](scene.a_tick()) == 1
            admitted.set()
            deadline = time.monotonic() + PATIENCE
            while not db.fetch("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"):
                assert time.monotonic() < deadline, "the hold did not wait for the admission"

    def hold_it() -> None:
        assert admitted.wait(PATIENCE)
        if what == "run":
            hold.hold_run(ann, "dag", run.run_id, scene.now, why="wrong data")
        else:
            hold.hold_task(ann, "dag", run.run_id, "a", scene.now, why="wrong data")

    together(admit, hold_it)
    assert scene.states(run) == {"a": "scheduled"}
    scene.settle()
    assert (scene.states(run), scene.executor.handed) == ({"a": "scheduled"}, [])
    if what == "run":
        hold.release_run(ann, "dag", run.run_id, scene.now)
    else:
        hold.release_task(ann, "dag", run.run_id, "a", scene.now)
    scene.tick()
    assert scene.states(run) == {"a": "queued"}


def test_a_hand_out_that_waits_when_its_run_is_held_does_not_start(scene: Scene) -> None:
    run = scene.run("a; b")
    scene.tick()
    scene.begin(scene.task(run, "a"))
    hold.hold_run(access.system("person", "ann"), "dag", run.run_id, scene.now, why="wait")
    assert scene.begin(scene.task(run, "b"), fence=1) == 0
    assert scene.end(scene.task(run, "a")) == 1
    scene.settle()
    assert scene.states(run) == {"a": "success", "b": "scheduled"}


def test_S_42_a_pause_during_creation_is_not_undone(scene: Scene) -> None:
    dag = scene.dag(
        shape("a", timetable={"kind": "cron_trigger", "expression": "0 * * * *"}), row={"start_date": scene.now}
    )
    schedules.plan_next(dag, scene.now)
    dag.save()
    started = threading.Event()

    def pause() -> int:
        started.set()
        return DagModel.objects.filter(pk=dag.pk).update(is_paused=True)

    thread = threading.Thread(target=lambda: (pause(), db.close()))
    with db.atomic():
        RUN["create_runs"](scene.a_tick())
        thread.start()
        assert started.wait(PATIENCE)
    thread.join(PATIENCE)
    dag.refresh_from_db()
    assert (dag.is_paused, dag.last_slot_run_after) == (True, scene.now)


def test_BC_19_two_schedulers_start_no_more_runs_of_a_backfill_than_it_allows(scene: Scene) -> None:
    scene.dag(shape("a", timetable={"kind": "cron_trigger", "expression": "0 0 * * *"}))
    first, last = scene.now - timedelta(days=9), scene.now - timedelta(days=1)
    wanted = backfills.Wanted("dag", first, last, max_active_runs=2)
    backfills.create(access.system("person", "ann"), wanted, scene.now)
    # one takes the DAG's lock and decides its eight slots and starts two runs, the other finds nothing to take
    assert sorted(both(scene, "run_backfills")) == [0, 10]
    assert both(scene, "run_backfills") == [0, 0]
    assert sorted(DagRun.objects.values_list("state", flat=True)) == ["queued"] * 6 + ["running"] * 2


def test_two_schedulers_miss_a_deadline_once(scene: Scene) -> None:
    callback = {"path": "mail.tell", "kwargs": {}, "sync": True}
    soon = {"reference": {"kind": "dagrun_queued_at"}, "interval": 60.0, "callback": callback}
    scene.run(scene.dag(shape("a", deadline=(soon,))))
    scene.wait(60)
    assert sorted(both(scene, "miss_deadlines")) == [0, 1]
    assert (Deadline.objects.filter(missed_at__isnull=False).count(), Callback.objects.count()) == (1, 1)


def test_I9_the_oldest_run_that_somebody_holds_is_not_cancelled_over_their_head(scene: Scene) -> None:
    timetable = {"kind": "cron_trigger", "expression": "0 * * * *"}
    dag = scene.dag(
        shape("a", timetable=timetable, max_active_runs=1),
        row={"start_date": scene.now, "overlap_policy": "cancel_oldest"},
    )
    schedules.plan_next(dag, scene.now)
    dag.save()
    scene.settle()
    old = DagRun.objects.get()
    scene.wait(3600)
    tick = scene.a_tick()
    with somebody_holds("SELECT id FROM scheduler_dag_run WHERE id = %s FOR NO KEY UPDATE", old.pk), db.atomic():
        RUN["create_runs"](tick)
    old.refresh_from_db()
    assert (old.state, tick.again, DagRun.objects.count()) == ("running", True, 1)
    scene.settle()
    assert scene.run_states(dag) == ["failed", "running"]


def test_I9_a_dag_that_somebody_edits_is_paused_afterwards(scene: Scene) -> None:
    run = scene.run(scene.dag(shape("a"), row={"max_consecutive_failed_dag_runs": 1}))
    scene.tick()
    scene.begin(scene.task(run, "a"))
    scene.end(scene.task(run, "a"), state="failed")
    with somebody_holds("SELECT dag_id FROM scheduler_dag WHERE dag_id = 'dag' FOR NO KEY UPDATE"):
        scene.phase("schedule_tasks", "pause_failing")
        assert (DagRun.objects.get().state, DagModel.objects.get().is_paused) == ("failed", False)
    scene.settle()
    assert DagModel.objects.get().is_paused


def test_I9_a_look_and_the_admission_behind_it_commit_together(scene: Scene) -> None:
    """Nobody sees what the look scheduled before it is admitted; a crash between the two leaves neither."""
    run = scene.run(scene.dag(shape("a >> b")))
    scene.tick()
    scene.begin(scene.task(run, "a"))
    scene.end(scene.task(run, "a"))
    seen: list[str | None] = []

    def looking(phase: Phase) -> Phase:
        def run_it(tick: Any) -> int:
            seen.append(_elsewhere("SELECT state FROM scheduler_task_instance WHERE task_id = 'b'"))
            return phase.run(tick)

        return replace(phase, run=run_it)

    phases = tuple(looking(phase) if phase.name in ("queue_tasks", "publish") else phase for phase in PHASES)
    Loop(phases).tick(scene.a_tick())
    assert seen == [None, "queued"]


def _elsewhere(sql: str) -> Any:
    """The first value as another connection sees it."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.extend(_read_and_close(sql)))
    thread.start()
    thread.join(PATIENCE)
    return found[0]


def _read_and_close(sql: str) -> tuple[Any, ...]:
    try:
        return db.fetch(sql)[0]
    finally:
        db.close()


def test_I4_a_scheduled_task_that_somebody_holds_keeps_no_other_waiting(scene: Scene) -> None:
    run = scene.run(scene.dag(shape("a; b")))
    scene.phase("start_runs", "schedule_tasks")
    tick = scene.a_tick()
    held = "SELECT id FROM scheduler_task_instance WHERE id = %s FOR NO KEY UPDATE"
    with somebody_holds(held, scene.task(run, "a").pk), db.atomic():
        assert RUN["queue_tasks"](tick) == 1
    assert (scene.states(run), tick.again) == ({"a": "scheduled", "b": "queued"}, True)
    scene.settle()
    assert scene.states(run) == {"a": "queued", "b": "queued"}
