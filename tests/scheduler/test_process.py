"""The scheduler's process: its options, its sleep, what it counts and what it says."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from typing import Any

import psycopg2
import pytest
from django.core.management import CommandError, call_command

from scheduler_app import metrics
from scheduler_app.conf import conf
from scheduler_app.executors.local import LocalExecutor
from scheduler_app.management.commands import runscheduler
from scheduler_app.models import DagRun, db
from scheduler_app.scheduler import process
from scheduler_app.scheduler.loop import Loop, Phase
from scheduler_app.scheduler.process import Bell, Options, SchedulerProcess
from tests.scheduler.scene import Scene
from tests.shapes import parallel


class Processor:
    """In the place of the DAG processor beside the scheduler: remembers what it was asked to be."""

    asked: dict[str, Any] = {}

    def __init__(self, **asked: Any) -> None:
        Processor.asked = asked

    def __enter__(self) -> Processor:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def is_over(self) -> bool:
        return False


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, settings: Any) -> list[Options]:
    """What ``runscheduler`` would run with."""
    found: list[Options] = []
    monkeypatch.setattr(runscheduler, "run_scheduler", found.append)
    monkeypatch.setattr(runscheduler, "Processor", Processor)
    settings.SCHEDULER = {**settings.SCHEDULER, "executor": "LocalExecutor"}
    return found


def test_F_02_every_option_of_the_command_reaches_the_loop_or_the_processor(started: list[Options]) -> None:
    words = "--num-runs 7 --idle-sleep 0.5 --executor LocalExecutor --num-times-parse-dags 2 --no-dag-processor"
    call_command("runscheduler", *words.split(), "--subdir", "elsewhere", "--log-level", "WARNING")
    (options,) = started
    assert (options.num_runs, options.idle_sleep_seconds, options.executor) == (7, 0.5, "LocalExecutor")
    assert Processor.asked == {"wanted": False, "subdir": "elsewhere", "num_times": 2}
    assert str(process.conf().dags_folder) == "elsewhere"
    assert logging.getLogger("scheduler_app").level == logging.WARNING
    logging.getLogger("scheduler_app").setLevel(logging.NOTSET)


def test_F_02_without_options_it_runs_until_it_is_told_to_stop(started: list[Options]) -> None:
    call_command("runscheduler")
    (options,) = started
    assert (options.num_runs, options.idle_sleep_seconds, options.executor) == (-1, None, "LocalExecutor")
    assert Processor.asked == {"wanted": True, "subdir": None, "num_times": -1}


def test_F_02_an_executor_that_is_not_there_is_named(started: list[Options]) -> None:
    with pytest.raises(CommandError, match="There is no executor 'Kubernetes'; there are Celery"):
        call_command("runscheduler", "--executor", "Kubernetes")
    assert started == []


class Sleeps(Bell):
    """Writes down how long the loop would have slept."""

    def __init__(self) -> None:
        super().__init__()
        self.slept: list[float] = []

    def wait(self, seconds: float, files: Any, stopping: threading.Event) -> list[int]:
        self.slept.append(seconds)
        return []


class Lease:
    job_id = 1


def passes(scene: Scene, count: int = 1, **options: Any) -> list[float]:
    scheduler = SchedulerProcess(scene.conf, Options(**options), scene.executors)
    scheduler.bell.close()
    scheduler.bell = bell = Sleeps()
    for _ in range(count):
        scheduler._pass(Lease(), scene.executors)  # type: ignore[arg-type]
    return bell.slept


def test_S_70_an_idle_loop_sleeps_its_idle_time_and_never_spins(scene: Scene) -> None:
    assert passes(scene)[0] == scene.conf.idle_poll_seconds > 0
    assert passes(scene, idle_sleep_seconds=0.2) == [0.2]


def test_a_loop_that_worked_does_not_sleep(scene: Scene) -> None:
    scene.run("a >> b")
    assert passes(scene) == []


def test_num_runs_ends_without_another_sleep(scene: Scene) -> None:
    assert passes(scene, 2, num_runs=2) == [scene.conf.idle_poll_seconds]


@pytest.mark.django_db
def test_S_71_a_notification_ends_the_sleep() -> None:
    bell = Bell()
    bell.listen()
    params = db.connection().get_connection_params()
    params.pop("cursor_factory", None)
    with psycopg2.connect(**params) as other:
        other.cursor().execute(f"NOTIFY {db.CHANNEL}")
    other.close()
    before = time.monotonic()
    assert bell.wait(30, [], threading.Event()) == []
    assert time.monotonic() - before < 15
    bell.close()


@pytest.mark.django_db
def test_S_71_an_attempt_that_ends_here_ends_the_sleep() -> None:
    bell, said = Bell(), Bell()
    said.ring()
    before = time.monotonic()
    assert bell.wait(30, [said._read], threading.Event()) == [said._read]
    assert time.monotonic() - before < 15
    bell.close()
    said.close()


def delays() -> float:
    return metrics.SCHEDULE_DELAY._sum.get()


def test_F_17_S_72_the_delay_of_a_scheduled_run_is_measured_at_its_first_start_alone(scene: Scene) -> None:
    before = delays()
    scene.run(scene.dag("a", "manual"))
    run = scene.run(scene.dag("a", "scheduled"))
    DagRun.objects.filter(pk=run.pk).update(run_type="scheduled", run_after=scene.now)
    scene.wait(7)
    scene.phase("start_runs")
    assert delays() == before + 7
    DagRun.objects.filter(pk=run.pk).update(state="queued", moved_by="clear")
    scene.wait(1000)
    scene.phase("start_runs")
    run.refresh_from_db()
    assert (run.state, delays()) == ("running", before + 7)


def test_S_54_what_a_phase_counted_and_did_not_commit_is_not_counted(scene: Scene) -> None:
    before = metrics.TASKS_QUEUED._value.get()

    def count_and_fail(tick: Any) -> int:
        metrics.TASKS_QUEUED.inc(5)
        with db.atomic():
            metrics.TASKS_QUEUED.inc(2)
        raise ValueError("boom")

    Loop().run_phase(Phase("fails", count_and_fail), scene.a_tick())
    assert metrics.TASKS_QUEUED._value.get() == before


def test_S_54_a_batch_that_is_tried_again_is_counted_once(scene: Scene) -> None:
    before = metrics.TASKS_QUEUED._value.get()
    tries = []

    def fail_once(tick: Any) -> int:
        tick.working_on = [1, 2]
        metrics.TASKS_QUEUED.inc(2)
        tries.append(tick.limit)
        if len(tries) == 1:
            raise ValueError("boom")
        return 2

    phase = Phase("fails once", fail_once, blame=lambda *_: None)
    assert Loop().run_phase(phase, scene.a_tick()) == 2
    assert (len(tries), metrics.TASKS_QUEUED._value.get()) == (2, before + 2)


def test_S_54_a_savepoint_that_is_rolled_back_takes_its_counts_with_it(scene: Scene) -> None:
    before = metrics.TASKS_QUEUED._value.get()
    with db.atomic():
        metrics.TASKS_QUEUED.inc(1)
        with contextlib.suppress(ValueError), db.atomic():
            metrics.TASKS_QUEUED.inc(10)
            raise ValueError
        assert metrics.TASKS_QUEUED._value.get() == before
    assert metrics.TASKS_QUEUED._value.get() == before + 1


def test_S_58_looks_at_blocked_tasks_write_no_lines(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    scene.run(scene.dag(parallel(50, max_active_tasks=1)))
    with caplog.at_level(logging.INFO, logger="scheduler_app"):
        for _ in range(5):
            scene.tick()
            scene.wait(1)
    assert [record.getMessage() for record in caplog.records] == []


class Telling(LocalExecutor):
    """An executor that has something for itself, and then news."""

    def __init__(self, news: list[bool]) -> None:
        super().__init__(conf())
        self.news = news

    def fileno(self) -> int:
        return 7

    def has_news(self) -> bool:
        return self.news.pop(0)


class Rings(Sleeps):
    """Each sleep is ended by the executor's file at once."""

    def wait(self, seconds: float, files: Any, stopping: threading.Event) -> list[int]:
        super().wait(seconds, files, stopping)
        return list(files)


def test_the_loop_sleeps_on_when_an_executor_has_nothing_for_it() -> None:
    scheduler = SchedulerProcess(conf(), Options())
    scheduler.bell.close()
    scheduler.bell = bell = Rings()
    telling = Telling([False, False, True, True])
    scheduler._sleep(30.0, {"telling": telling})
    assert telling.news == [True]
    assert [29 < seconds <= 30 for seconds in bell.slept] == [True] * 3
