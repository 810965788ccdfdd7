"""What is used of every limit, by what the ledger knows of the rows (I2)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from scheduler_app.engine import states
from scheduler_app.engine.limits import decode

from .cast import LIMITS, SLOTS

#: Admission gave a slot.
QUEUES = frozenset({"queue", "schedule_and_queue"})

if TYPE_CHECKING:
    from .ledger import Entry, Ledger


class InForce:
    """A limit, and the values that it had while a transaction that is still open may have read it."""

    def __init__(self, value: int) -> None:
        self.value, self.before = value, set[int]()

    def set(self, value: int) -> None:
        self.before.add(self.value)
        self.value = value

    @property
    def allowed(self) -> int:
        return max(self.value, *self.before) if self.before else self.value


class Spending:
    """Of everything that a hand-out or a start of this step took, no more is used than there is."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger, self.world = ledger, ledger.world

    def check_hand_outs(self, handed: Iterable[Entry]) -> None:
        active = [entry for entry in self.ledger.tasks.values() if entry.target in states.ACTIVE]
        world = self.world
        for entry in handed:
            latest = self.ledger.tasks.get(entry.row_id)
            if latest is None or latest.target not in states.ACTIVE:
                continue  # it went on in the same step
            pool, run, task = entry.pool, entry.run_id, entry.name
            with_deferred = pool in world.keeping
            used = sum(e.slots for e in active if e.pool == pool and (with_deferred or e.target != states.DEFERRED))
            self._at_most(used, world.pools[pool].allowed, f"slots of pool {pool}")
            of_dag = [e for e in active if e.dag_id == entry.dag_id]
            per_run = world.conf.max_active_tasks_per == "run"
            mine = [e for e in of_dag if e.run_id == run] if per_run else of_dag
            whose = f"run {run}" if per_run else entry.dag_id
            self._at_most(len(mine), world.max_active_tasks[entry.dag_id].allowed, f"tasks of {whose} at once")
            same = [e for e in of_dag if e.name == task]
            self._at_most(len(same), entry.per_dag, f"instances of {entry.dag_id}.{task} at once")
            here = [e for e in same if e.run_id == run]
            self._at_most(len(here), entry.per_run, f"instances of {task} in run {run} at once")
            self._keyed(entry, active)
            self._slots_of(entry.job)

    def _slots_of(self, job: int | None) -> None:
        """A scheduler hands out no more than its executor can take: its living attempts, and what is on its way."""
        world = self.world
        taken = {(row.row_id, row.fence) for row in self.ledger.tasks.values() if row.target in states.OCCUPYING}
        mine = taken & {(one.ti_id, one.fence) for one in world.attempts if one.owner == job}
        sent = {(row.row_id, row.fence) for row in self.ledger.tasks.values() if row.verb in QUEUES and row.job == job}
        self._at_most(len(mine | (sent - world.accepted)), SLOTS, f"hand-outs of scheduler {job}")

    def _keyed(self, entry: Entry, active: Iterable[Entry]) -> None:
        """Named limits: units in use at once, or handed out within the window that ends with this hand-out."""
        for name, _ in decode(entry.limits):
            seconds = LIMITS[name][1]
            allowed = self.world.keyed[name].allowed
            if seconds is None:
                self._at_most(sum(_units(e, name) for e in active), allowed, f"units of limit {name} at once")
            else:
                assert entry.since is not None
                since = entry.since - timedelta(seconds=seconds)
                handed = self.ledger.handed
                lately = [units for at, which, units in handed if which == name and since < at <= entry.since]
                self._at_most(sum(lately), allowed, f"units of rate {name} in {seconds:g} s")

    def check_starts(self, begun: Iterable[Entry]) -> None:
        running = [entry for entry in self.ledger.runs.values() if entry.target == states.RUNNING]
        for entry in begun:
            if entry.job is None:
                many = sum(e.dag_id == entry.dag_id and e.job is None for e in running)
                self._at_most(many, self.world.max_active_runs[entry.dag_id].allowed, f"runs of {entry.dag_id}")
            elif entry.job in self.world.backfill_limits:
                many = sum(e.job == entry.job for e in running)
                self._at_most(many, self.world.backfill_limits[entry.job], f"runs of backfill {entry.job}")

    def _at_most(self, used: int, limit: int | None, what: str) -> None:
        if limit is not None and used > limit:
            self.world.fail("I2", f"{used} {what}, of at most {limit}")


def _units(entry: Entry, name: str) -> int:
    return sum(units for which, units in decode(entry.limits) if which == name)
