"""Triggerers of the world: the real statements; which trigger fires, fails or is lost is the world's choice."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from scheduler_app.models import Job
from scheduler_app.triggerer import rows

from .deeds import Deed

if TYPE_CHECKING:
    from .world import World


@dataclass(slots=True, eq=False)
class Triggerer:
    job_id: int
    #: triggers that run here
    held: dict[int, rows.Waiting] = field(default_factory=dict)
    busy: bool = False

    def __str__(self) -> str:
        return f"{self.job_id}"


def start(world: World) -> str:
    job = Job.objects.create(job_type="TriggererJob", start_date=world.now, latest_heartbeat=world.now)
    world.triggerers.append(Triggerer(job.pk))
    return f"a new triggerer, {job.pk}"


def act(world: World) -> Deed | str:
    """One of them claims, renews, or stores what fired."""
    idle = [one for one in world.triggerers if not one.busy]
    if not idle:
        return start(world) if not world.triggerers else "all are busy"
    one = world.rng.choice(idle)
    return world.rng.choice([claim, fire, renew])(world, one)


def claim(world: World, one: Triggerer) -> Deed:
    def work() -> list[rows.Waiting]:
        return rows.describe(rows.claim(one.job_id, world.now, world.conf.lease_seconds, limit=3))

    def then(found: list[rows.Waiting]) -> str:
        one.held.update((waiting.trigger_id, waiting) for waiting in found)
        return f"{one} claims {[waiting.trigger_id for waiting in found]}"

    return Deed(work, then, one, killed=lambda: world.triggerers.remove(one))


def fire(world: World, one: Triggerer) -> Deed | str:
    if not one.held:
        return f"{one} holds none"
    some = world.rng.sample(sorted(one.held), k=min(len(one.held), world.rng.choice([1, 2])))
    results = [_result(world, one.held[key]) for key in some]

    def then(moved: list[int]) -> str:
        for key in some:
            one.held.pop(key, None)
        return f"{one} stores {some}: {moved} go on"

    work = functools.partial(rows.resume, results, world.now)
    return Deed(work, then, one, killed=lambda: world.triggerers.remove(one))


def _result(world: World, waiting: rows.Waiting) -> rows.Result:
    kind = world.rng.choices(["event", "error", "success", "failed"], [6, 2, 1, 1])[0] if world.faults else "event"
    if kind == "event":
        return rows.Result(waiting.trigger_id, payload=True)
    if kind == "error":
        return rows.Result(waiting.trigger_id, error={"type": "Error", "message": "boom"})
    return rows.Result(waiting.trigger_id, end={"state": kind, "xcoms": {}}, claim=waiting.claim)


def renew(world: World, one: Triggerer) -> Deed:
    def work() -> set[int]:
        rows.drop_unwanted()
        return rows.renew(one.job_id, set(one.held), world.now, world.conf.lease_seconds)

    def then(mine: set[int]) -> str:
        one.held = {key: waiting for key, waiting in one.held.items() if key in mine}
        return f"{one} keeps {sorted(mine)}"

    return Deed(work, then, one, killed=lambda: world.triggerers.remove(one))


def one_dies(world: World) -> str | None:
    idle = [one for one in world.triggerers if not one.busy]
    if not idle:
        return None
    one = world.rng.choice(idle)
    world.triggerers.remove(one)
    return f"{one}"
