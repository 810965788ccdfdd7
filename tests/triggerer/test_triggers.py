"""Triggers in real children: what their tasks get, and what happens when one of them misbehaves."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler_app import attempt_log, wire
from scheduler_app.conf import Conf
from scheduler_app.engine.dag import Dag, Task
from scheduler_app.models import (
    Callback,
    DagRun,
    DagVersion,
    Job,
    TaskInstance,
    Trigger,
    Variable,
    Wake,
    XCom,
    db,
    transitions,
)
from scheduler_app.secrets import encrypt
from scheduler_app.triggerer import rows
from scheduler_app.triggerer.process import Triggerer
from tests.rows import T0, default_pool, store, trigger

pytestmark = [pytest.mark.django_db, pytest.mark.processes]

MODULE = """
import asyncio
import logging
import os


class Event:
    def __init__(self, payload):
        self.payload = payload


class Fires:
    def __init__(self, payload=None, after=0.0):
        self.payload, self.after = payload, after

    async def run(self):
        logging.getLogger("mine").warning("about to fire")
        await asyncio.sleep(self.after)
        yield Event(self.payload)


class Waits:
    async def run(self):
        self.mark("started ")
        await asyncio.sleep(3600)
        yield Event(None)

    async def on_kill(self):
        self.mark("killed ")

    async def cleanup(self):
        self.mark("cleaned")

    def mark(self, text):
        with open(os.environ["TRIGGER_MARK"], "a") as file:
            file.write(text)


class Ends:
    def __init__(self, state, xcoms):
        self.state, self.xcoms = state, xcoms

    async def run(self):
        from airflow.triggers.base import TaskFailedEvent, TaskSkippedEvent, TaskSuccessEvent

        kinds = {"success": TaskSuccessEvent, "failed": TaskFailedEvent, "skipped": TaskSkippedEvent}
        yield kinds[self.state](xcoms=self.xcoms)


class Breaks:
    async def run(self):
        raise RuntimeError("out of order")
        yield


class SaysNothing:
    async def run(self):
        return
        yield


class Blocks:
    async def run(self):
        import time

        time.sleep(2.5)
        await asyncio.sleep(1.0)
        yield Event("late")


class Dies:
    async def run(self):
        os._exit(3)
        yield


class ReadsVariable:
    def __init__(self, key):
        self.key = key

    async def run(self):
        from airflow.sdk import Variable

        yield Event(Variable.get(self.key))
"""


class World:
    """A DAG folder with trigger classes, a triggerer, and task instances that wait."""

    def __init__(self, folder: Path) -> None:
        (folder / "things.py").write_text(MODULE)
        self.mark = folder / "mark"
        self.conf = Conf(log_folder=folder / "logs")
        default_pool()
        dag = Dag(
            dag_id="waits", tasks=tuple(Task(task_id=f"t{n}", retries=2, callbacks=("failure",)) for n in range(4))
        )
        self.dag = store(dag, fileloc=str(folder / "waits.py"), relative_fileloc="waits.py")
        self.run: DagRun = trigger(self.dag)[0]
        self.job = Job.objects.create(job_type="TriggererJob", start_date=T0, latest_heartbeat=T0)
        self.triggerer = Triggerer(
            self.conf, {**os.environ, "TRIGGER_MARK": str(self.mark)}, self.job.pk, time.monotonic
        )

    def defer(self, number: int, name: str, **kwargs: Any) -> TaskInstance:
        """Task ``t<number>`` waits for a trigger of that class, to go on in ``done(event, seen)``."""
        row = Trigger.objects.create(
            classpath=name if "." in name else f"things.{name}",
            kwargs=wire.encode(kwargs),
            dag_id="waits",
            created_date=T0,
        )
        ti = TaskInstance.objects.get(dag_run=self.run, task_id=f"t{number}")
        for verb in ("schedule", "queue", "start"):
            assert transitions.tasks(verb, [ti.pk], T0) == [ti.pk]
        transitions.tasks(
            "defer",
            [ti.pk],
            T0,
            trigger_id=row.pk,
            trigger_timeout=T0 + timedelta(hours=1),
            next_method="done",
            next_kwargs=transitions_json({"seen": 1}),
        )
        ti.refresh_from_db()
        return ti

    def until(self, condition: Any, seconds: float = 20.0) -> None:
        """Step the triggerer until it is so."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the triggerer did not get there"
            self.triggerer.step(0.05, db.clock)

    def log_of(self, ti: TaskInstance) -> list[str]:
        file = attempt_log.path(self.conf.log_folder, "waits", self.run.run_id, ti.task_id, -1, ti.try_number)
        return [line["event"] for line in attempt_log.read(file)[0]]


def transitions_json(value: Any) -> Any:
    from psycopg2.extras import Json

    return Json(value)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.triggerer.close()


def moved(*tis: TaskInstance) -> bool:
    for ti in tis:
        ti.refresh_from_db()
    return all(ti.state != "deferred" for ti in tis)


def test_an_event_lets_its_task_go_on_and_the_trigger_is_gone(world: World):
    ti = world.defer(0, "Fires", payload={"at": T0})
    world.until(lambda: moved(ti))
    assert (ti.state, ti.next_method, ti.trigger_id, ti.trigger_timeout) == ("scheduled", "done", None, None)
    assert ti.next_kwargs == {"seen": 1, "event": {"at": {"__type": "datetime", "__value": T0.isoformat()}}}
    assert Trigger.objects.count() == 0
    assert world.log_of(ti) == ["about to fire", "The trigger fired; the task goes on."]


def test_BC_85_a_broken_trigger_fails_its_own_task_and_no_other(world: World):
    broken, silent, gone, fine = (
        world.defer(0, "Breaks"),
        world.defer(1, "SaysNothing"),
        world.defer(2, "nowhere.Missing"),
        world.defer(3, "Fires", payload=1),
    )
    everyone = (broken, silent, gone, fine)
    world.until(lambda: moved(*everyone))
    assert [ti.state for ti in everyone] == ["scheduled"] * 4
    assert [ti.next_method for ti in everyone] == ["__fail__", "__fail__", "__fail__", "done"]
    assert {ti.next_kwargs["error"] for ti in everyone[:3]} == {"Trigger failure"}
    assert broken.next_kwargs["traceback"][-1] == "RuntimeError: out of order\n"
    assert "ended without an event" in silent.next_kwargs["traceback"][-1]
    assert "The trigger nowhere.Missing cannot be imported" in gone.next_kwargs["traceback"][-1]


def test_a_trigger_may_end_its_task_without_another_attempt(world: World):
    good, bad, skipped = (
        world.defer(number, "Ends", state=state, xcoms={"found": number})
        for number, state in enumerate(("success", "failed", "skipped"))
    )
    world.until(lambda: moved(good, bad, skipped))
    assert [ti.state for ti in (good, bad, skipped)] == ["success", "failed", "skipped"]
    assert XCom.objects.get(task_id="t0").value == 0
    assert list(Callback.objects.values_list("kind", "task_instance_id")) == [("task_failure", bad.pk)]
    assert bad.reason is not None
    assert bad.reason.startswith("Its trigger ended it.")
    assert set(Wake.objects.values_list("task_id", flat=True)) >= {"t0", "t1", "t2"}


def test_an_event_after_the_task_went_on_by_itself_changes_nothing(world: World):
    ti = world.defer(0, "Waits")
    world.until(lambda: world.triggerer.held == {ti.trigger_id})
    result = rows.Result(ti.trigger_id, payload="too late")
    assert transitions.tasks("skip", [ti.pk], T0) == [ti.pk]
    assert rows.resume([result], T0) == []
    ti.refresh_from_db()
    assert (ti.state, ti.next_kwargs) == ("skipped", None)


def test_a_trigger_that_nobody_waits_for_is_cancelled_and_cleaned_up(world: World):
    ti = world.defer(0, "Waits")
    world.until(lambda: world.mark.exists())
    assert transitions.tasks("mark_success", [ti.pk], T0) == [ti.pk]
    world.triggerer._next_renewal = 0.0
    world.until(lambda: world.mark.read_text() == "started killed cleaned")
    assert world.triggerer.held == set()
    assert Trigger.objects.count() == 0


@pytest.mark.parametrize("verb", ["mark_failed", "clear", "resume"])
def test_a_trigger_is_cancelled_long_before_the_next_look_at_all_of_them(
    transactional_db: None, tmp_path: Path, verb: str
):
    world = World(tmp_path)
    try:
        ti = world.defer(0, "Waits")
        world.until(lambda: world.mark.exists())
        world.triggerer._next_renewal = time.monotonic() + 3600
        transitions.tasks(verb, [ti.pk], T0)
        world.until(lambda: world.mark.read_text() == "started killed cleaned", seconds=10)
        assert Trigger.objects.count() == 0
    finally:
        world.triggerer.close()


def test_only_who_takes_a_task_from_its_trigger_tells_triggerers(transactional_db: None, world: World):
    first, second = world.defer(0, "Waits"), world.defer(1, "Waits")
    with db.cursor() as cursor:
        cursor.execute(f"LISTEN {db.TRIGGER_STOP_CHANNEL}")
    raw = db.connection().connection
    transitions.tasks("resume", [first.pk], T0, fences=[1])  # its trigger fired
    raw.poll()
    assert raw.notifies == []
    transitions.tasks("mark_success", [second.pk], T0)
    raw.poll()
    assert [heard.channel for heard in raw.notifies] == [db.TRIGGER_STOP_CHANNEL]
    raw.notifies.clear()
    with db.cursor() as cursor:
        cursor.execute("UNLISTEN *")


def test_a_trigger_that_kills_its_process_fails_and_its_neighbours_go_on(world: World):
    killer = world.defer(0, "Dies")
    fine = [world.defer(number, "Fires", payload=number, after=0.5) for number in (1, 2, 3)]
    world.until(lambda: moved(killer, *fine))
    assert killer.next_method == "__fail__"
    assert killer.next_kwargs["traceback"] == [
        "ProcessLost: It ended its process 2 times, last because its process exited with code 3."
    ]
    assert [(ti.next_method, ti.next_kwargs["event"]) for ti in fine] == [("done", 1), ("done", 2), ("done", 3)]


def test_a_trigger_may_read_a_variable(world: World, settings: Any):
    settings.SCHEDULER = {**settings.SCHEDULER, "fernet_keys": ("z" * 43 + "=",)}
    Variable.objects.create(key="city", value_encrypted=encrypt("Bonn"))
    ti = world.defer(0, "ReadsVariable", key="city")
    world.until(lambda: moved(ti))
    assert ti.next_kwargs == {"seen": 1, "event": "Bonn"}


def test_a_second_triggerer_takes_over_only_what_the_first_no_longer_holds(world: World):
    ti = world.defer(0, "Waits")
    now = T0
    assert rows.claim(world.job.pk, now, 30, 10) == [ti.trigger_id]
    assert [(waiting.trigger_id, waiting.claim.task_id) for waiting in rows.describe([ti.trigger_id])] == [
        (ti.trigger_id, "t0")
    ]
    other = Job.objects.create(job_type="TriggererJob", start_date=T0, latest_heartbeat=T0)
    assert rows.claim(other.pk, now + timedelta(seconds=29), 30, 10) == []
    assert rows.renew(world.job.pk, [ti.trigger_id], now + timedelta(seconds=29), 30) == {ti.trigger_id}
    assert rows.claim(other.pk, now + timedelta(seconds=58), 30, 10) == []
    assert len(rows.claim(other.pk, now + timedelta(seconds=59), 30, 10)) == 1
    assert rows.renew(world.job.pk, [ti.trigger_id], now + timedelta(seconds=60), 30) == set()


def test_BC_85_a_trigger_whose_task_cannot_be_described_fails_alone(world: World):
    bad, good = world.defer(0, "Fires"), world.defer(1, "Fires", payload=2)
    document = {**world.dag.latest_version.document, "schema_version": 10**6}
    broken = DagVersion.objects.create(dag=world.dag, version_number=99, dag_hash="", document=document, created_at=T0)
    TaskInstance.objects.filter(pk=bad.pk).update(dag_version=broken)
    world.until(lambda: moved(bad, good))
    assert (bad.next_method, good.next_kwargs["event"]) == ("__fail__", 2)
    assert "The trigger cannot be run: DAG 'waits' was serialised by a newer version" in bad.next_kwargs["traceback"][0]


def test_a_stored_trigger_is_taken_at_once_and_not_at_the_next_look(transactional_db: None, tmp_path: Path):
    world = World(tmp_path)
    try:
        world.triggerer.step(0.0, db.clock)
        world.triggerer._next_claim = time.monotonic() + 3600
        with db.atomic():
            ti = world.defer(0, "Waits")
            db.execute(f"NOTIFY {db.TRIGGER_CHANNEL}")
        world.until(lambda: world.triggerer.held == {ti.trigger_id}, seconds=10)
    finally:
        world.triggerer.close()


def test_a_resumed_task_keeps_its_place_before_those_that_still_wait(world: World):
    ti = world.defer(0, "Fires", payload=1)
    before = ti.scheduled_when
    world.until(lambda: moved(ti))
    assert (ti.state, ti.scheduled_when) == ("scheduled", before)


def test_a_trigger_is_announced_when_it_is_stored(transactional_db: None):
    from scheduler_app.models.effect import NewTrigger

    with db.cursor() as cursor:
        cursor.execute(f"LISTEN {db.TRIGGER_CHANNEL}")
    with db.atomic():
        Trigger.objects.add([NewTrigger("a.B", {}, "waits")], T0)
    raw = db.connection().connection
    raw.poll()
    assert [heard.channel for heard in raw.notifies] == [db.TRIGGER_CHANNEL]
    raw.notifies.clear()
    with db.cursor() as cursor:
        cursor.execute("UNLISTEN *")


def test_a_trigger_that_blocks_the_others_is_named_in_its_own_log(world: World):
    fine, guilty = world.defer(0, "Waits"), world.defer(1, "Blocks")
    world.until(lambda: moved(guilty))
    said = [line for line in world.log_of(guilty) if "held up all others" in line]
    assert len(said) == 1
    assert "time.sleep(2.5)" in said[0]
    assert not any("held up" in line for line in world.log_of(fine))
