"""Attempts of the world: they begin, end in every way that an attempt can, die, hang, come back late, beat."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from scheduler_app.executors.base import Lost
from scheduler_app.runner import claims, heartbeats, outcomes
from scheduler_app.runner.buffers import RETURN_KEY, Buffer, Owner

from .cast import COUNTS, PAID, PARTITIONS, SENT, SHIPPED, WAITS
from .deeds import Deed
from .ledger import Report

if TYPE_CHECKING:
    from .world import World


@dataclass(slots=True, eq=False)
class Attempt:
    """A process of the world. ``claim`` None: it was handed out and has not begun."""

    ti_id: int
    fence: int
    owner: int
    claim: claims.Claim | None = None
    #: alive | hangs (no heartbeat, may come back late)
    life: str = "alive"
    #: it is in a transaction that is still open
    busy: bool = False
    #: it has said within the time-out that it lives
    trusted: bool = True

    def __str__(self) -> str:
        return f"{self.ti_id}/{self.fence}"


def pick(world: World, *, begun: bool, life: str = "alive") -> Attempt | None:
    fitting = [a for a in world.attempts if a.life == life and (a.claim is not None) == begun and not a.busy]
    return world.rng.choice(fitting) if fitting else None


def begin(world: World) -> Deed | None:
    attempt = pick(world, begun=False)
    return None if attempt is None else begin_one(world, attempt)


def begin_one(world: World, attempt: Attempt) -> Deed:
    worker = claims.Worker(attempt.owner, "world", "u")
    work = functools.partial(claims.claim, [attempt.ti_id], [attempt.fence], world.now, worker)

    def then(claimed: list[claims.Claim]) -> str:
        if not claimed:
            world.forget(attempt)
            return f"{attempt} refused"
        attempt.claim = claimed[0]
        world.ledger.reports.append(Report(attempt.ti_id, attempt.fence, "start"))
        return f"{attempt} {claimed[0].label}"

    return Deed(work, then, attempt, killed=lambda: world.forget(attempt))


def end(world: World) -> Deed | None:
    attempt = pick(world, begun=True)
    return None if attempt is None else end_one(world, attempt, _outcome(world, attempt))


def end_well(world: World, attempt: Attempt) -> Deed:
    """Without faults: it succeeds, and defers no more."""
    return end_one(world, attempt, _success(world, attempt, attempt.claim.task_id if attempt.claim else ""))


def end_one(world: World, attempt: Attempt, document: dict[str, Any] | None, exit_text: str = "") -> Deed:
    claim = attempt.claim
    assert claim is not None
    buffer = Buffer()
    if document and document.get("map_length") is not None:
        buffer.push(RETURN_KEY, [0] * document["map_length"], document["map_length"])
    report = outcomes.Report(claim, document, exit_text, buffer)
    work = functools.partial(outcomes.write, [report], world.now)

    def then(written: dict[int, outcomes.Decision]) -> str:
        world.forget(attempt)
        said = document["state"] if document else exit_text
        if attempt.ti_id not in written:
            return f"{attempt} {claim.label} {said}: refused"
        decision = written[attempt.ti_id]
        world.ledger.reports.append(Report(attempt.ti_id, attempt.fence, decision.verb))
        _check_fate(world, attempt, document, decision.verb)
        return f"{attempt} {claim.label} {said}: {decision.verb}"

    return Deed(work, then, attempt, killed=lambda: world.forget(attempt))


def _check_fate(world: World, attempt: Attempt, document: dict[str, Any] | None, verb: str) -> None:
    """A failure is retried exactly while tries are left (the ledger knows what the row said)."""
    claim = attempt.claim
    assert claim is not None
    if verb == "fail" and claim.task is not None and claim.try_number <= claim.max_tries:
        world.fail("I1", f"{claim.label} failed for good in try {claim.try_number} of {claim.max_tries + 1}")
    if document is not None and document["state"] == "success" and verb not in ("succeed", "retry"):
        world.fail("I1", f"{claim.label} succeeded, and that was written as {verb}")


def _outcome(world: World, attempt: Attempt) -> dict[str, Any] | None:
    rng = world.rng
    assert attempt.claim is not None
    task_id = attempt.claim.task_id
    if task_id.startswith(WAITS) and rng.random() < 0.7:
        return rng.choice([_deferral, _reschedule])(world)
    state = rng.choices(["success", "failed", "skipped", "silence"], [16, 4, 2, 1])[0]
    if state == "silence":
        return None
    if state == "success":
        return _success(world, attempt, task_id)
    return {"op": "outcome", "state": state, "error": {"type": "Error", "message": "boom"}}


def _success(world: World, attempt: Attempt, task_id: str) -> dict[str, Any]:
    document: dict[str, Any] = {"op": "outcome", "state": "success"}
    assert attempt.claim is not None
    task = attempt.claim.task
    if task is not None and task.outlets:
        document["asset_events"] = [_asset_event(world, one) for one in task.outlets]
    if task_id == COUNTS:
        document["map_length"] = world.rng.choice([0, 1, 2, 3])
    if task is not None and task.can_skip_downstream:
        document["skip"] = [name for name in task.downstream if world.rng.random() < 0.5]
    return document


def _asset_event(world: World, outlet: dict[str, Any]) -> dict[str, Any]:
    """An update of the asset, or of one that its alias then stands for; perhaps of a partition."""
    alias = {"alias": outlet["alias"]} if "alias" in outlet else {}
    one = world.rng.choice([SHIPPED, PAID, SENT]) if alias else outlet
    return {
        "name": one["name"],
        "uri": one["uri"],
        "extra": {},
        "partition_key": world.rng.choice([None, *PARTITIONS]),
        **alias,
    }


def _deferral(world: World) -> dict[str, Any]:
    defer = {"classpath": "house.Trigger", "kwargs": {}, "next_method": "go_on", "next_kwargs": {}}
    return {"op": "outcome", "state": "deferred", "defer": {**defer, "timeout": world.rng.choice([None, 5.0, 60.0])}}


def _reschedule(world: World) -> dict[str, Any]:
    at = world.now + timedelta(seconds=world.rng.choice([1, 5, 30]))
    return {"op": "outcome", "state": "up_for_reschedule", "reschedule_at": at.isoformat()}


def die(world: World) -> str | None:
    """Its process is gone; its executor may notice (and say so) or not."""
    fitting = [attempt for attempt in world.attempts if not attempt.busy]
    if not fitting:
        return None
    attempt = world.rng.choice(fitting)
    world.forget(attempt)
    told = world.rng.random() < 0.5
    for scheduler in world.schedulers:
        if told and scheduler.job_id == attempt.owner and scheduler.alive:
            scheduler.executor.gone.append(Lost(attempt.ti_id, attempt.fence, "Its process was killed."))
            world.told_lost.add((attempt.ti_id, attempt.fence))
    return f"{attempt} {'told' if told else 'silently'}"


def hang(world: World) -> str | None:
    attempt = pick(world, begun=True)
    if attempt is None:
        return None
    attempt.life = "hangs"
    return f"{attempt}"


def come_back(world: World) -> Deed | None:
    """Late: its row may have moved on. Whatever it writes then must match nothing."""
    attempt = pick(world, begun=True, life="hangs")
    return None if attempt is None else end_one(world, attempt, _outcome(world, attempt))


def redeliver(world: World) -> str | None:
    """The broker gives a message out again, also one whose hand-out is over: a second process wants to start."""
    if not world.delivered:
        return None
    attempt = world.rng.choice(world.delivered)
    world.attempts.append(Attempt(attempt.ti_id, attempt.fence, attempt.owner))
    return f"{attempt}"


def beat(world: World) -> None:
    """Living attempts say so in one statement; those whose row is no longer theirs are stopped, sooner or later."""
    alive = [a for a in world.attempts if a.life == "alive" and a.claim is not None and not a.busy]
    beats = [
        heartbeats.Beat(
            Owner(a.ti_id, a.claim.run_pk, a.claim.dag_id, a.claim.task_id, a.claim.map_index), a.fence, 1, Buffer()
        )
        for a in alive
        if a.claim is not None
    ]
    pulse = heartbeats.beat(beats, world.now)
    for attempt in alive:
        attempt.trusted = attempt.ti_id not in pulse.foreign
        if attempt.ti_id in pulse.foreign and world.rng.random() < 0.8:
            world.forget(attempt)
        elif attempt.ti_id in pulse.restarting and world.rng.random() < 0.8:
            world.do(end_one(world, attempt, None, "stopped because it was cleared"))
