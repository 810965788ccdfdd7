"""One bad row stops nobody else, and nothing that must be left alone fills a window (I4, I5)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from scheduler_app import metrics
from scheduler_app.models import DagRun, DagVersion, TaskInstance, Wake, facts, graphs
from scheduler_app.runner import claims
from scheduler_app.scheduler.loop import PHASES, PROBE_COLUMNS, Loop, Phase
from scheduler_app.scheduler.phases import schedule_tasks
from scheduler_app.scheduler.tick import Tick
from tests.rows import at, trigger
from tests.scheduler.scene import Scene
from tests.shapes import chain, parallel, shape


@contextmanager
def unreadable(*dag_ids: str) -> Iterator[None]:
    """Their definitions cannot be read for the time of the block."""
    kept = {version.pk: version.document for version in DagVersion.objects.filter(dag__in=dag_ids)}
    DagVersion.objects.filter(pk__in=kept).update(document={"schema_version": 999})
    graphs.forget()
    yield
    for key, document in kept.items():
        DagVersion.objects.filter(pk=key).update(document=document)
    graphs.forget()


def wake(scene: Scene, *runs: DagRun) -> None:
    Wake.objects.add([run.pk for run in runs], "task_cleared", scene.now)


def test_BC_11_S_09_tasks_of_a_dag_whose_definition_is_away_wait_and_go_on(scene: Scene) -> None:
    """Fifty scheduled ones in three runs, one of them limited."""
    scene.executor.slots = 0
    dag = scene.dag(parallel(17, "lost", tasks={"p0": {"max_active_tis_per_dag": 1}}, max_active_tasks=99))
    runs = scene.runs(dag, 3)
    scene.settle()
    before = list(TaskInstance.objects.order_by("pk").values())
    with unreadable("lost"):
        wake(scene, *runs)
        scene.tick()
        assert list(TaskInstance.objects.order_by("pk").values()) == before
        errors = DagRun.objects.values_list("look_error", "look_failures")
        assert [("written by a newer version" in text or "newer version" in text, n) for text, n in errors] == [
            (True, 1)
        ] * 3
    scene.executor.slots = 99
    scene.wait(60)
    scene.settle()
    assert scene.counts() == {"queued": 49, "scheduled": 2}
    assert list(DagRun.objects.values_list("look_error", "look_failures", "backoff_until").distinct()) == [
        (None, 0, None)
    ]


def test_S_26_a_run_that_cannot_be_looked_at_holds_up_no_other_in_its_batch(scene: Scene) -> None:
    bad = scene.run(scene.dag(shape("a", "bad")))
    good = scene.runs(scene.dag(shape("a", "good")), 5)
    with unreadable("bad"):
        assert scene.tick() > 0
    assert [scene.states(run) for run in good] == [{"a": "queued"}] * 5
    bad.refresh_from_db()
    assert (bad.state, bad.look_failures, scene.states(bad)) == ("running", 1, {"a": None})
    assert bad.backoff_until == bad.next_check_at
    assert not Wake.objects.exists()


def test_S_26_a_run_whose_look_raises_is_alone_with_its_error(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, *good = scene.runs(scene.dag("a"), 4)
    judge, key = schedule_tasks.look, scene.task(bad, "a").pk

    def look(graph: Any, tis: list[Any], **more: Any) -> Any:
        if any(ti.id == key for ti in tis):
            raise ZeroDivisionError("a flaw of ours")
        return judge(graph, tis, **more)

    monkeypatch.setattr(schedule_tasks, "look", look)
    scene.tick()
    assert [scene.states(run) for run in good] == [{"a": "queued"}] * 3
    bad.refresh_from_db()
    assert (bad.look_error, bad.look_failures) == ("ZeroDivisionError: a flaw of ours", 1)
    monkeypatch.undo()
    scene.wait(60)
    scene.tick()
    bad.refresh_from_db()
    assert (scene.states(bad), bad.look_error, bad.look_failures) == ({"a": "queued"}, None, 0)


def test_BC_61_S_40_twenty_broken_runs_at_the_head_hold_nobody_up(scene: Scene) -> None:
    broken = scene.runs(scene.dag(shape("a", "broken", max_active_runs=99)), 20)
    healthy = scene.runs(scene.dag(shape("a", "healthy", max_active_runs=99)), 50)
    scene.limit = 20
    with unreadable("broken"):
        scene.phase("start_runs", "start_runs", "start_runs", "start_runs")
        # The broken ones fill the first look; all are due again at the same moment if nothing keeps them away.
        scene.phase("schedule_tasks", "schedule_tasks", "schedule_tasks", "schedule_tasks")
    assert scene.counts(dag_run__in=healthy) == {"scheduled": 50}
    assert scene.counts(dag_run__in=broken) == {None: 20}
    assert (
        list(DagRun.objects.filter(pk__in=[run.pk for run in broken]).values_list("look_failures", flat=True))
        == [1] * 20
    )


def test_a_run_that_fails_again_and_again_is_left_alone_longer_and_longer(scene: Scene) -> None:
    run = scene.run("a")
    waits = []
    with unreadable("dag"):
        for _ in range(3):
            scene.tick(2)
            run.refresh_from_db()
            assert run.backoff_until is not None
            waits.append(round((run.backoff_until - scene.now).total_seconds(), 1))
            scene.now = run.backoff_until
    assert [waits[1] / waits[0], waits[2] / waits[1]] == pytest.approx([2.0, 2.0], rel=0.02)
    assert run.look_failures == 3


def test_S_40_a_run_that_is_left_alone_is_not_looked_at_for_a_wake_that_comes_meanwhile(scene: Scene) -> None:
    """Its look may take the whole batch down: whatever ends in it must not bring the error back before its time."""
    run = scene.run("a")
    with unreadable("dag"):
        scene.tick()
        run.refresh_from_db()
        until = run.backoff_until
        for _ in range(3):
            wake(scene, run)
            scene.tick()
        run.refresh_from_db()
        assert (run.look_failures, run.backoff_until, run.next_check_at) == (1, until, until)
    assert not Wake.objects.exists()
    scene.wait(60)
    scene.settle()
    assert scene.states(run) == {"a": "queued"}


def test_S_23_S_24_a_phase_that_raises_stops_no_other_and_is_counted(scene: Scene) -> None:
    def broken(_: Any) -> int:
        raise ZeroDivisionError

    ran: list[str] = []
    phases = (Phase("sweep", broken), Phase("sample_metrics", lambda _: ran.append("next") or 3))
    counted = metrics.PHASE_ERRORS.labels("sweep")._value.get()
    loop = Loop(phases, monotonic=lambda: 0.0)
    assert loop.tick(scene.a_tick()) == 3
    assert loop.tick(scene.a_tick()) == 3
    assert ran == ["next", "next"]
    assert metrics.PHASE_ERRORS.labels("sweep")._value.get() == counted + 2


def test_I5_an_error_text_that_no_row_can_hold_is_kept_without_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(*_: Any, **__: Any) -> Any:
        raise ValueError("a\0b")

    monkeypatch.setattr(schedule_tasks, "look", look)
    run = scene.run("a")
    scene.tick()
    run.refresh_from_db()
    assert run.look_error == "ValueError: ab"


def test_a_batch_that_fails_is_halved_until_its_culprit_stands_alone(scene: Scene) -> None:
    """The phase raises whenever row 7 is in its batch; the others are done, and row 7 is blamed."""
    left, blamed, batches = list(range(10)), [], []

    def run(tick: Any) -> int:
        tick.working_on = left[: tick.limit]
        batches.append(len(tick.working_on))
        if 7 in tick.working_on:
            raise ZeroDivisionError
        done = tick.working_on
        del left[: len(done)]
        return len(done)

    def blame(_: Any, row: object, error: BaseException) -> None:
        blamed.append((row, type(error)))
        left.remove(row)

    loop = Loop((Phase("sweep", run, blame=blame),), monotonic=lambda: 0.0)
    again = []
    for _ in range(6):
        tick = scene.a_tick()
        loop.tick(tick)
        again.append(tick.again)
    assert again.count(True) == 1
    assert (left, blamed) == ([], [(7, ZeroDivisionError)])
    assert batches[0] == 10


def test_I5_the_run_that_waited_longest_is_looked_at_first(scene: Scene) -> None:
    """Two thousand older runs that are always due must not keep a younger one from its look."""
    scene.limit = 4
    busy = scene.runs(scene.dag(shape("a", "busy", max_active_runs=99)), 8)
    quiet = scene.run(scene.dag(shape("a", "quiet")))
    scene.phase("start_runs", "start_runs", "start_runs")
    Wake.objects.all().delete()
    wake(scene, *busy[:3], quiet, *busy[3:])
    scene.phase("schedule_tasks")
    wake(scene, *busy)
    assert scene.states(quiet) == {"a": "scheduled"}
    looks = 0
    while Wake.objects.filter(dag_run=busy[7]).exists():
        scene.phase("schedule_tasks")
        wake(scene, *busy[:4])
        looks += 1
    assert looks == 2


def test_BC_133_the_sweep_goes_past_any_number_of_runs_that_it_must_leave_alone(scene: Scene) -> None:
    """A hundred runs wait for their past for good reason; the forgotten one has the highest key."""
    dag = scene.dag(shape("s >> t", "past", max_active_runs=200, tasks={"t": {"depends_on_past": True}}, catchup=False))
    for number in range(12):
        trigger(dag, 1, now=scene.now, prefix=f"r{number:02}_", logical_date=at(60.0 * number - 3600))
    scene.tick()
    starts = list(TaskInstance.objects.filter(task_id="s"))
    scene.begin(*starts)
    scene.end(*starts)
    scene.tick(2)
    first = TaskInstance.objects.filter(task_id="t", state="queued").get()
    scene.begin(first)
    scene.end(first, state="failed")
    forgotten = scene.run(scene.dag(shape("a >> b", "forgotten")))
    scene.settle()
    scene.begin(scene.task(forgotten, "a"))
    scene.end(scene.task(forgotten, "a"))
    Wake.objects.filter(dag_run=forgotten).delete()  # as if a change had not said so
    scene.settle()
    assert scene.counts(dag_id="past", state=None, task_id="t") == {None: 11}
    swept = metrics.SWEPT._value.get()
    scene.limit = 4
    scene.wait(scene.conf.sweep_seconds)
    assert scene.phase("sweep") == 12
    scene.limit = 512
    scene.phase("schedule_tasks")
    assert scene.states(forgotten)["b"] == "scheduled"
    assert metrics.SWEPT._value.get() == swept + 1


def test_a_healthy_system_has_nothing_for_the_sweep(scene: Scene) -> None:
    swept = metrics.SWEPT._value.get()
    runs = scene.runs(scene.dag("a >> [b, c] >> d"), 3)
    for run in runs:
        scene.play(run)
        scene.wait(scene.conf.sweep_seconds + 1)
    scene.settle()
    assert metrics.SWEPT._value.get() == swept


def test_S_41_a_wake_of_a_run_that_is_gone_is_dropped(scene: Scene) -> None:
    Wake.objects.add([10**9], "task_ended", scene.now)
    scene.phase("schedule_tasks")
    assert not Wake.objects.exists()


def test_S_01_an_idle_tick_is_one_statement(scene: Scene, django_assert_num_queries: Any) -> None:
    """A thousand DAGs that are paused, finished or not due yet cost nothing."""
    for number in range(20):
        scene.dag(shape("a", f"d{number}"), row={"is_paused": number % 2 == 0})
    scene.settle()
    scene.wait(0.1)
    with django_assert_num_queries(1):
        assert scene.tick() == 0


def test_BC_13_blocked_tasks_of_others_are_neither_loaded_nor_asked(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, django_assert_max_num_queries: Any
) -> None:
    """Whatever waits behind sensors, the end of a task costs its own run's rows alone."""
    sensors = scene.dag(shape("s >> [" + ", ".join(f"w{n}" for n in range(60)) + "]", "sensors"))
    blocked = scene.runs(sensors, 5)
    scene.settle()
    scene.begin(*TaskInstance.objects.filter(task_id="s"))
    run = scene.run(scene.dag(chain(2, "quick")))
    scene.settle()
    scene.begin(scene.task(run, "t0"))
    loaded: list[int] = []
    load = facts.task_facts

    def counting(*arguments: Any) -> Any:
        found = load(*arguments)
        loaded.extend(len(tis) for tis in found.tis.values())
        return found

    monkeypatch.setattr(facts, "task_facts", counting)
    scene.end(scene.task(run, "t0"))
    with django_assert_max_num_queries(30):
        scene.phase("schedule_tasks", "queue_tasks", "publish")
    assert loaded == [2]
    assert scene.states(run) == {"t0": "success", "t1": "queued"}
    assert scene.counts(dag_run__in=blocked, task_id__startswith="w") == {None: 300}


def test_a_partial_look_loads_the_followers_of_what_ended_and_what_they_need(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = scene.run(scene.dag(chain(40)))
    scene.tick()
    scene.begin(scene.task(run, "t0"))
    scene.end(scene.task(run, "t0"))
    loaded: list[int] = []
    load = facts.task_facts

    def counting(*arguments: Any) -> Any:
        found = load(*arguments)
        loaded.append(len(found.tis[run.pk]))
        return found

    monkeypatch.setattr(facts, "task_facts", counting)
    scene.phase("schedule_tasks")
    assert (loaded, scene.states(run)["t1"]) == ([2], "scheduled")


def test_no_phase_reads_a_clock_of_its_own(scene: Scene) -> None:
    """A scene a year ahead of the machine's clock gives rows a year ahead (I7)."""
    scene.wait(365 * 86_400)
    run = scene.run("a")
    scene.play(run)
    task = scene.task(run, "a")
    assert {task.scheduled_when, task.queued_when, task.start_date, task.end_date, run.end_date} == {scene.now}


def test_an_admission_that_raises_takes_no_look_back_for_good(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """What shared its transaction is done again by itself, once."""
    run = scene.run("a >> b")
    scene.tick()
    scene.begin(scene.task(run, "a"))
    scene.end(scene.task(run, "a"))

    def broken(_: object) -> int:
        raise ValueError("no admission today")

    phases = tuple(replace(phase, run=broken) if phase.name == "queue_tasks" else phase for phase in PHASES)
    Loop(phases).tick(scene.a_tick())
    assert scene.states(run) == {"a": "success", "b": "scheduled"}
    scene.settle()
    assert scene.states(run) == {"a": "success", "b": "queued"}


def test_after_a_look_at_many_runs_the_admission_has_a_transaction_of_its_own(scene: Scene) -> None:
    scene.runs(scene.dag("a", max_active_runs=99), 40)
    scene.phase("start_runs")
    step = next(step for step in scene.loop.steps if len(step) > 1)
    flags = dict.fromkeys(PROBE_COLUMNS, True)
    changed, rest = scene.loop.run_together(step, scene.a_tick(), flags)
    assert (changed, [phase.name for phase in rest]) == (40, ["queue_tasks"])
    assert scene.counts() == {"scheduled": 40}


def test_whoever_asks_is_told_the_phase_that_runs_also_in_a_shared_transaction(scene: Scene) -> None:
    said: list[str] = []

    def ask(_: Tick) -> int:
        said.append(loop.phase)
        return 1

    step = (Phase("first", ask, probe="wakes"), Phase("second", ask, probe="wakes", joins=True))
    loop = Loop(step)
    loop.run_together(step, scene.a_tick(), {"wakes": True})
    loop.run_phase(step[0], scene.a_tick())
    assert (said, loop.phase) == (["first", "second", "first"], "")


def test_hand_outs_that_are_claimed_together_begin_although_one_cannot_be_described(scene: Scene) -> None:
    """The claim has committed by then: asking again for the others found them started, by nobody."""
    runs = [scene.run(scene.dag(shape("a", name))) for name in ("bad", "good", "other")]
    scene.settle()
    tasks = [scene.task(run, "a") for run in runs]
    with unreadable("bad"):
        claimed = claims.claim(
            [task.pk for task in tasks], [task.fence for task in tasks], scene.now, claims.Worker(0, "host", "user")
        )
    assert [one.dag_id for one in claimed] == ["good", "other"]
    assert [scene.states(run)["a"] for run in runs] == ["failed", "running", "running"]
    reason = scene.task(runs[0], "a").reason
    assert reason is not None
    assert reason.startswith("It cannot be started: ValueError: DAG None was serialised by a newer version")
