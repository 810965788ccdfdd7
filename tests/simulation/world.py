"""The world: schedulers that run the real phases, attempts, a triggerer, an author and people who click, on one clock.

Each step picks one actor by the seed's random numbers and performs one transaction (or phase) of its. It may be stopped
before any of its statements: there its process is killed, or it stands still with its transaction open while others act
(``aside``). After each step the ledger is checked (see ``ledger`` for the invariants that are checked at each commit).
At the end the faults stop and everything has to come to an end:

* I3: every run, task, backfill slot, deadline, queued asset event and due slot of a schedule is dealt with in bounded
  time, and the safety sweep finds nothing that a wake should have announced.
* I5: no phase raised, no DAG, run or backfill keeps an error.
* I6: between its first slot and the end a schedule that catches up has a run, or a recorded skip, for every slot.
* I8: each missed deadline, and each ended try and run that has a callback, asked for it exactly once; each asset event
  was used at most once by each DAG that waits for it.
* I9: PostgreSQL found no deadlock.

Not here: I4 in its exact order (tests/engine/test_admission.py, tests/scheduler/test_selection.py), poisoned rows
(tests/scheduler/test_isolation.py), real clocks and processes (tests/chaos).

A violation names the seed and the step, which is the whole bug report.
"""

from __future__ import annotations

import dataclasses
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler_app import metrics
from scheduler_app.conf import Conf, conf
from scheduler_app.models import Backfill, DagModel, DagRun, Pool, TaskInstance, db
from tests.rows import T0, trigger

from . import attempts, ending, judgements, people, poison, schedulers, triggerers
from .aside import SESSION, Aside, Gate, Killed, kill
from .attempts import Attempt
from .cast import CAST, KEEPING, LIMITS, PARTS, POOLS, Part, logical_date
from .deeds import Deed
from .ledger import Ledger
from .poison import Poison
from .schedulers import Scheduler
from .spending import InForce
from .triggerers import Triggerer

Act = Callable[["World"], "Deed | str | None"]

#: Who acts how often.
ACTORS: tuple[tuple[int, Act], ...] = (
    (60, schedulers.phase),
    (20, attempts.begin),
    (20, attempts.end),
    (6, triggerers.act),
)
FAULTS: tuple[tuple[int, Act], ...] = (
    (2, attempts.die),
    (2, attempts.hang),
    (2, attempts.come_back),
    (2, attempts.redeliver),
    (1, schedulers.one_dies),
    (1, triggerers.one_dies),
    (3, judgements.clears_a_task),
    (1, judgements.clears_a_run),
    (1, judgements.clears_runs),
    (2, judgements.marks_a_task),
    (1, judgements.marks_a_run),
    (1, judgements.deletes_a_run),
    (1, judgements.deletes_a_task),
    (1, people.triggers_a_run),
    (2, people.pauses),
    (2, people.holds),
    (2, people.releases),
    (1, people.resizes_a_pool),
    (1, people.changes_a_limit),
    (3, people.backfills_a_dag),
    (2, people.tells_of_an_asset),
    (3, people.changes_a_file),
    (1, poison.spoils),
    (1, poison.mends),
)
#: Shares of the deeds that are stopped at a statement: their process killed, or their transaction held open.
KILLED, ASIDE = 0.03, 0.15
#: A person's request is seldom and takes many statements: more of them are held open.
ASIDE_BY_HAND = 0.4
#: DAGs that a seed plays.
PARTS_PLAYED = (3, 6)


class Violation(AssertionError):
    """An invariant does not hold; the text says which, where and for which seed."""


@dataclass
class World:
    seed: int
    schedulers_wanted: int = 2
    #: DAGs that play whatever the seed says
    wanted: Sequence[str] = ()
    faults: bool = True
    now: datetime = T0
    step_number: int = 0
    #: by what chance decides; a test may bring its own
    rng: Any = None
    parts: list[Part] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    schedulers: list[Scheduler] = field(default_factory=list)
    triggerers: list[Triggerer] = field(default_factory=list)
    #: hand-outs that some executor took, ever; the last ones, which a broker may deliver again; those it said were lost
    accepted: set[tuple[int, int]] = field(default_factory=set)
    delivered: deque[Attempt] = field(default_factory=lambda: deque(maxlen=30))
    told_lost: set[tuple[int, int]] = field(default_factory=set)
    history: list[str] = field(default_factory=list)
    versions: dict[str, int] = field(default_factory=dict)
    #: limits in force
    pools: dict[str, InForce] = field(default_factory=dict)
    keyed: dict[str, InForce] = field(default_factory=dict)
    max_active_runs: dict[str, InForce] = field(default_factory=dict)
    max_active_tasks: dict[str, InForce] = field(default_factory=dict)
    backfill_limits: dict[int, int] = field(default_factory=dict)
    #: runs that had ended when a person cleared tasks of theirs and said that the run stays as it is
    left_ended: set[int] = field(default_factory=set)
    keeping = KEEPING
    #: what is spoilt now, by DAG
    spoilt: dict[str, Poison] = field(default_factory=dict)
    #: what phases raised
    errors: list[tuple[str, BaseException]] = field(default_factory=list)
    under_way: Deed | None = None
    _spent: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rng = self.rng or random.Random(self.seed)
        self.ledger = Ledger(self)
        self.conf: Conf = conf()
        self.swept = metrics.SWEPT._value.get()

    # ── making and unmaking ──────────────────────────────────────────────────────────────────────────────────────────
    def build(self, aside: Aside) -> World:
        """Stores the DAGs with their runs and starts the schedulers. The database must be empty."""
        self.aside = aside
        db.execute(SESSION)
        self.conf = dataclasses.replace(
            conf(),
            runs_follow_newest_version=self.rng.random() < 0.7,
            priority_ageing_seconds=self.rng.choice([0.0, 0.0, 5.0]),
            wide_task_wait_seconds=self.rng.choice([60.0, 10.0]),
            max_active_tasks_per=self.rng.choice(["run", "run", "dag"]),
            timed_out_running_tasks=self.rng.choice(["skipped", "failed"]),
        )
        #: as those of a LocalExecutor do, not those of a Celery worker
        self.attempts_die_with_their_scheduler = self.rng.random() < 0.5
        names = self.rng.sample([part.dag_id for part in CAST], k=self.rng.randint(*PARTS_PLAYED))
        self.parts = [PARTS[name] for name in dict.fromkeys([*self.wanted, *names])]
        actors = [*ACTORS, (12, type(self)._time_passes)]
        #: some seeds go without some faults: the others then meet more often
        actors += [fault for fault in FAULTS if self.rng.random() < 0.75] if self.faults else []
        self.weights, self.acts = zip(*actors, strict=True)
        for name, slots in POOLS.items():
            Pool.objects.update_or_create(pool=name, defaults={"slots": slots, "include_deferred": name in KEEPING})
            self.pools[name] = InForce(slots)
        self.keyed = {name: InForce(amount) for name, (amount, _) in LIMITS.items()}
        for part in self.parts:
            self.do(people.store_file(self, part))
            dag = DagModel.objects.get(pk=part.dag_id)
            for run in range(part.runs):
                trigger(dag, 1, now=self.now, prefix=f"r{run}_", logical_date=logical_date(run, part.runs))
        for _ in range(self.schedulers_wanted):
            schedulers.start(self)
        return self

    def limit(self, dag_id: str, runs: int, tasks: int) -> None:
        for limits, value in ((self.max_active_runs, runs), (self.max_active_tasks, tasks)):
            limits.setdefault(dag_id, InForce(value)).set(value)

    def monotonic(self) -> float:
        return (self.now - T0).total_seconds()

    def spent(self, what: str, most: int) -> bool:
        """Whether people have done this often enough for one seed."""
        self._spent[what] = self._spent.get(what, 0) + 1
        return self._spent[what] > most

    # ── a step ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def step(self) -> None:
        """One actor does one thing."""
        if self.under_way is not None and self.rng.random() < 0.2:
            self.note("it goes on", self.land(dies=self._may_die(self.under_way) and self.rng.random() < 0.2))
        else:
            act = self.rng.choices(self.acts, self.weights)[0]
            self.act(act)

    def act(self, act: Act) -> None:
        deed = act(self)
        if deed is None:
            self.step_number += 1  # nothing to do for this one, so there is nothing to check
        else:
            self.note(act.__name__, deed if isinstance(deed, str) else self._start(deed))

    def note(self, what: str, text: str) -> None:
        """One line of the history; then the invariants are checked."""
        self.step_number += 1
        self.history.append(f"{self.step_number} +{self.monotonic():.0f}s {what}: {text}")
        self._land_if_forced()
        self.check()

    def check(self) -> None:
        if self.errors:
            name, error = self.errors[0]
            invariant = "I9" if "deadlock" in str(error) else "I5"
            self.fail(invariant, f"{name} raised {type(error).__name__}: {error}")
        moved = self.ledger.check()
        self.history += [f"    {one}" for one in sorted(moved, key=lambda one: (one.txid, one.kind, one.row_id or 0))]
        if metrics.SWEPT._value.get() != self.swept:
            self.swept = metrics.SWEPT._value.get()
            self.fail("I3", "only the safety sweep found what no wake had announced")
        if self.under_way is None:
            for limits in (self.pools, self.keyed, self.max_active_runs, self.max_active_tasks):
                for limit in limits.values():
                    limit.before.clear()

    def _start(self, deed: Deed) -> str:
        chance = self.rng.random() if self.faults else 1.0
        if chance < KILLED and self._may_die(deed):
            return self._killed(deed)
        share = ASIDE if deed.killed is not None else ASIDE_BY_HAND
        if KILLED <= chance < KILLED + share and self.under_way is None:
            return self._set_aside(deed)
        return self.do(deed)

    def do(self, deed: Deed) -> str:
        """The whole of it at once."""
        result = self._worked(deed.work)
        self._land_if_forced()  # it committed before this did
        return deed.then(result)

    def _worked(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except db.DatabaseError as error:
            return self.fail("I9" if "deadlock" in str(error) else "I5", f"{type(error).__name__}: {error}")

    @staticmethod
    def _may_die(deed: Deed) -> bool:
        return deed.killed is not None

    def _killed(self, deed: Deed) -> str:
        try:
            with db.connection().execute_wrapper(Gate(self.rng.choice([1, 2, 3, 4, 5, 6, 8, 10, 14]), kill)):
                result = self._worked(deed.work)
        except Killed:
            assert deed.killed is not None
            deed.killed()
            return f"{deed.actor}, killed in the middle"
        self._land_if_forced()
        return deed.then(result)

    def _land_if_forced(self) -> None:
        if self.under_way is not None and self.aside.was_forced:
            self.history.append(f"  the others waited for it, so it went on: {self.land()}")

    def _set_aside(self, deed: Deed) -> str:
        if deed.actor is not None:
            deed.actor.busy = True
        self.under_way = deed
        if self.aside.begin(deed.work, self.rng.choice([1, 2, 3, 4, 5, 6, 8, 10, 14])):
            return f"{deed.actor or 'a person'} stands still in the middle"
        return self.land()

    def land(self, *, dies: bool = False) -> str:
        """What stood still goes on to its end, or is killed there."""
        deed, self.under_way = self.under_way, None
        assert deed is not None
        if deed.actor is not None:
            deed.actor.busy = False
        try:
            result = self._worked(lambda: self.aside.end(dies=dies))
        except Killed:
            assert deed.killed is not None
            deed.killed()
            return f"{deed.actor}, killed in the middle"
        return deed.then(result)

    def _time_passes(self) -> str:
        seconds = self.rng.choices([0.01, 0.5, 1, 3, 10, 20, 400], [4, 4, 4, 4, 4, 3, 1])[0]
        if seconds == 400 and self.under_way is not None:
            seconds = 1
        self.now += timedelta(seconds=seconds)
        if seconds == 400:
            for scheduler in self.schedulers:
                scheduler.trusted = False
            for attempt in self.attempts:
                attempt.trusted = False
            return "the clock jumps, and nobody has said yet that he lives"
        self.beat()
        return f"{seconds} s"

    def beat(self) -> None:
        schedulers.beat(self)
        attempts.beat(self)

    # ── what actors tell ─────────────────────────────────────────────────────────────────────────────────────────────
    def deliver(self, attempt: Attempt) -> None:
        self.accepted.add((attempt.ti_id, attempt.fence))
        self.attempts.append(attempt)
        self.delivered.append(attempt)

    def forget(self, attempt: Attempt) -> None:
        if attempt in self.attempts:
            self.attempts.remove(attempt)

    def is_trusted(self, job_id: int | None) -> bool:
        """A scheduler that lives, and has said so within its lease."""
        return any(one.job_id == job_id and one.alive and one.trusted for one in self.schedulers)

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────────
    def finish(self, most_passes: int = 600) -> None:
        """No more faults: everything must come to an end in bounded time (I3), without the safety sweep.

        What is spoilt is mended when everything else has ended (I5).
        """
        ending.calm_down(self)
        for _ in range(most_passes):
            busy = ending.one_pass(self)
            if not busy and ending.is_over(self):
                if not self.spoilt:
                    ending.check(self)
                    return
                ending.mend(self)
            self.now += timedelta(seconds=2 if busy else 40)
            self.beat()
        left = DagRun.objects.exclude(state__in=["success", "failed"]).values_list("dag_id", "run_id", "state")
        unfinished = list(Backfill.objects.unfinished().values_list("pk", flat=True))
        self.fail("I3", f"these runs never ended: {list(left)}, backfills {unfinished}; {self.open_tasks()}")

    def open_tasks(self) -> list[Any]:
        rows = TaskInstance.objects.exclude(state__in=["success", "failed", "skipped", "upstream_failed", "removed"])
        return list(rows.values_list("pk", "dag_id", "task_id", "dag_run__run_id", "state", "fence")[:20])

    def fail(self, invariant: str, text: str) -> Any:
        steps = "\n  ".join(self.history[-30:])
        raise Violation(f"{invariant}, seed {self.seed}, step {self.step_number}: {text}\n  {steps}")
