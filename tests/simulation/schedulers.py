"""Schedulers of the world: the real loop, phase by phase, with an executor that hands everything to the world."""

from __future__ import annotations

import dataclasses
import functools
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from scheduler_app.executors.base import Executor, HandOut, Lost
from scheduler_app.models import Job
from scheduler_app.scheduler.loop import PROBE_COLUMNS, Loop, Phase
from scheduler_app.scheduler.tick import Tick

from . import hidden
from .attempts import Attempt
from .cast import SLOTS
from .deeds import Deed
from .poison import Poisoned

if TYPE_CHECKING:
    from .world import World


class BrokerDown(Exception):
    """The broker of an executor does not answer."""


class WorldExecutor(Executor):
    """Takes hand-outs for the world; at times its broker takes them and does not answer, or takes nothing."""

    name = "WorldExecutor"

    def __init__(self, world: World, *, remembers: bool) -> None:
        self.world, self.job_id, self.remembers = world, 0, remembers
        self.gone: list[Lost] = []
        #: fine | full (takes nothing) | down (raises) | deaf (takes, then raises)
        self.broker = "fine"

    def start(self, job_id: int) -> None:
        self.job_id = job_id

    def slots_available(self) -> int:
        mine = {(a.ti_id, a.fence) for a in self.world.attempts if a.owner == self.job_id}
        return SLOTS - len(mine)

    def knows(self, hand_out: HandOut) -> bool:
        mine = {(a.ti_id, a.fence) for a in self.world.attempts if a.owner == self.job_id}
        return self.remembers and (hand_out.ti_id, hand_out.fence) in mine

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        if self.broker == "full":
            return list(batch)
        if self.broker == "down":
            raise BrokerDown
        for hand_out in batch:
            self.world.deliver(Attempt(hand_out.ti_id, hand_out.fence, self.job_id))
        if self.broker == "deaf":
            raise BrokerDown
        return []

    def lost(self) -> list[Lost]:
        told, self.gone = self.gone, []
        return told

    def cancel(self, batch: Sequence[HandOut]) -> None:
        return None

    def describe(self) -> dict[str, Any]:
        return {"name": self.name}

    def stop(self, drain_seconds: float) -> None:
        return None


class WorldLoop(Loop):
    """Whatever a phase raises, but for the broker's faults and over what is spoilt, stops the world."""

    world: World

    def _halve(self, phase: Phase, tick: Tick, error: Exception) -> bool:
        if not isinstance(error, (BrokerDown, Poisoned)):
            self.world.errors.append((phase.name, error))
        return super()._halve(phase, tick, error)

    def _part(self, phase: Phase, error: Exception) -> None:
        if not isinstance(error, Poisoned):
            self.world.errors.append((phase.name, error))


@dataclasses.dataclass(slots=True, eq=False)
class Scheduler:
    job_id: int
    executor: WorldExecutor
    loop: Loop
    #: index into the table of phases: the next one that it runs
    at: int = 0
    alive: bool = True
    #: in a transaction that is still open
    busy: bool = False
    #: it has said within its lease that it lives
    trusted: bool = True

    def __str__(self) -> str:
        return f"{self.job_id}"


def start(world: World) -> str:
    job = Job.objects.create(job_type="SchedulerJob", start_date=world.now, latest_heartbeat=world.now)
    executor = WorldExecutor(world, remembers=world.rng.random() < 0.5)
    executor.start(job.pk)
    loop = WorldLoop(monotonic=world.monotonic)
    loop.world = world
    world.schedulers.append(Scheduler(job.pk, executor, loop))
    return f"a new scheduler, {job.pk}"


def a_tick(world: World, scheduler: Scheduler) -> Tick:
    return Tick(
        now=world.now,
        job_id=scheduler.job_id,
        conf=world.conf,
        executors={scheduler.executor.name: scheduler.executor},
        rng=random.Random(world.rng.getrandbits(32)),
        limit=world.rng.choice([1, 3, 50, 512]),
    )


def phase(world: World) -> Deed | str:
    """The next phase of one of them, at times with the one that joins it in the same transaction."""
    alive = [scheduler for scheduler in world.schedulers if scheduler.alive]
    if len(alive) < world.schedulers_wanted and (not alive or world.rng.random() < 0.3):
        return start(world)
    idle = [scheduler for scheduler in alive if not scheduler.busy]
    if not idle:
        return "all are busy"
    scheduler = world.rng.choice(idle)
    table = scheduler.loop.phases
    mine, below = table[scheduler.at % len(table)], table[(scheduler.at + 1) % len(table)]
    scheduler.at += 1
    if world.faults:
        scheduler.executor.broker = world.rng.choices(["fine", "full", "down", "deaf"], [20, 1, 1, 1])[0]
    if below.joins and world.rng.random() < 0.5:
        scheduler.at += 1
        flags = dict.fromkeys(PROBE_COLUMNS, True)
        together = functools.partial(scheduler.loop.run_together, (mine, below), a_tick(world, scheduler), flags)
        told = f"{scheduler} {mine.name} and {below.name}"
        return Deed(together, lambda n: f"{told}: {n[0]}", scheduler, killed=lambda: die(world, scheduler))
    tick = a_tick(world, scheduler)

    def then(n: int) -> str:
        alone = world.under_way is None and tick.now == world.now and not world.aside.was_forced
        if mine.name == "queue_tasks" and n == 0 and alone and not tick.again:
            hidden.check(world, scheduler)
        return f"{scheduler} {mine.name}: {n}"

    work = functools.partial(scheduler.loop.run_phase, mine, tick)
    return Deed(work, then, scheduler, killed=lambda: die(world, scheduler))


def die(world: World, scheduler: Scheduler) -> None:
    """Its local attempts go with it, those that had not begun too. Those of a worker elsewhere live on."""
    scheduler.alive = scheduler.busy = False
    if world.attempts_die_with_their_scheduler:
        for attempt in [a for a in world.attempts if a.owner == scheduler.job_id and not a.busy]:
            world.forget(attempt)


def one_dies(world: World) -> str | None:
    alive = [scheduler for scheduler in world.schedulers if scheduler.alive and not scheduler.busy]
    if not alive:
        return None
    scheduler = world.rng.choice(alive)
    die(world, scheduler)
    return f"{scheduler}"


def beat(world: World) -> None:
    """Living processes say that they live; one that was buried stops by itself, as its lease tells it."""
    alive = [scheduler for scheduler in world.schedulers if scheduler.alive]
    jobs = [scheduler.job_id for scheduler in alive] + [one.job_id for one in world.triggerers]
    Job.objects.filter(pk__in=jobs, state="running").update(latest_heartbeat=world.now)
    running = set(Job.objects.filter(pk__in=jobs, state="running").values_list("pk", flat=True))
    for scheduler in alive:
        scheduler.trusted = scheduler.job_id in running
        if scheduler.job_id not in running and not scheduler.busy:
            die(world, scheduler)
    world.triggerers = [one for one in world.triggerers if one.job_id in running]
