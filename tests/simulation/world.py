"""The world: N schedulers that run the real phases, attempts that end, die, hang or come back late, people who click.

One thread and one database connection; each step picks one actor by the seed's random numbers and performs one
transaction of its. A scheduler may be stopped before a commit, or after it and before its effects. After each step the
invariants are checked; a violation names the seed and the step, which is the whole bug report.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler_app import access
from scheduler_app.actions import backfills
from scheduler_app.conf import conf
from scheduler_app.engine import states
from scheduler_app.executors.base import Executor, HandOut, Lost
from scheduler_app.models import (
    Backfill,
    BackfillSlot,
    Callback,
    DagModel,
    DagRun,
    Deadline,
    Job,
    Pool,
    TaskInstance,
    Wake,
    db,
    transitions,
)
from scheduler_app.runner import claims, outcomes
from scheduler_app.scheduler.loop import PHASES, Loop, Phase
from scheduler_app.scheduler.tick import Tick
from tests.rows import T0, store, trigger
from tests.shapes import shape

#: The schedule of the DAG that people backfill; its slots are the logical dates that its first runs have.
DAILY = {"kind": "cron_trigger", "expression": "0 12 * * *"}
BACKFILLED = "dag2"
#: A deadline that some runs keep and others miss.
SOON = {
    "reference": {"kind": "dagrun_queued_at"},
    "interval": 120.0,
    "callback": {"path": "house.tell", "kwargs": {}, "sync": True},
}
#: The DAGs of the world: (text, fields of the DAG, fields of its tasks, runs)
DAGS: tuple[tuple[str, dict[str, Any], dict[str, Any], int], ...] = (
    ("a >> [b, c] >> d", {"max_active_runs": 2}, {"*": {"retries": 2, "retry_delay": 5.0}}, 4),
    ("p0; p1; p2; p3; p4; p5", {"max_active_tasks": 2}, {"*": {"retries": 1, "retry_delay": 3.0}}, 2),
    (
        "x >> y >> z",
        {"dagrun_timeout": 900.0, "timetable": DAILY, "deadline": (SOON,)},
        {"y": {"is_empty": True}, "z": {"trigger_rule": "all_done"}},
        3,
    ),
    ("one", {"max_active_runs": 1}, {"one": {"pool": "narrow", "pool_slots": 2, "max_active_tis_per_dag": 1}}, 3),
    ("s >> t", {}, {"t": {"depends_on_past": True, "retries": 3, "retry_delay": 1.0}}, 3),
    (
        "first >> [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w13] >> last",
        {"max_active_tasks": 4},
        {"last": {"trigger_rule": "none_failed"}, "*": {"retries": 4, "retry_delay": 2.0}},
        1,
    ),
)


PERSON = access.system("person", "ann")


class Violation(AssertionError):
    """An invariant does not hold; the text says which, where and for which seed."""


class Stopped(Exception):
    """The scheduler was killed inside its transaction, just before the commit."""


@dataclass(slots=True)
class Attempt:
    """A process of the world. ``claim`` None: it was handed out and has not begun."""

    ti_id: int
    fence: int
    owner: int
    claim: claims.Claim | None = None
    #: alive | hangs (no heartbeat, may come back late) | dead
    life: str = "alive"


class WorldExecutor(Executor):
    """Hands everything to the world; the world decides what becomes of it."""

    name = "WorldExecutor"

    def __init__(self, world: World, slots: int) -> None:
        self.world, self.slots, self.job_id = world, slots, 0
        self.gone: list[Lost] = []

    def start(self, job_id: int) -> None:
        self.job_id = job_id

    def slots_available(self) -> int:
        mine = [a for a in self.world.attempts if a.owner == self.job_id and a.life == "alive"]
        return self.slots - len(mine)

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        known = {(attempt.ti_id, attempt.fence) for attempt in self.world.attempts}
        for hand_out in batch:
            # a redelivered hand-out is a second process that wants to start: the claim must refuse it
            if (hand_out.ti_id, hand_out.fence) in known:
                self.world.count("redelivered")
            self.world.attempts.append(Attempt(hand_out.ti_id, hand_out.fence, self.job_id))
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


@dataclass(slots=True)
class Scheduler:
    job_id: int
    executor: WorldExecutor
    loop: Loop
    #: index into the table of phases: the next one that it runs
    at: int = 0
    alive: bool = True


@dataclass
class World:
    seed: int
    schedulers_wanted: int = 2
    faults: bool = True
    phases: tuple[Phase, ...] = PHASES
    now: datetime = T0
    step_number: int = 0
    attempts: list[Attempt] = field(default_factory=list)
    schedulers: list[Scheduler] = field(default_factory=list)
    started: set[tuple[int, int]] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    # ── making and unmaking ──────────────────────────────────────────────────────────────────────────────────────────
    def build(self) -> World:
        """Stores the DAGs with their runs and starts the schedulers. The database must be empty."""
        Pool.objects.update_or_create(pool="default_pool", defaults={"slots": 6})
        Pool.objects.update_or_create(pool="narrow", defaults={"slots": 3})
        self.limits = {}
        for number, (text, fields, tasks, runs) in enumerate(DAGS):
            dag = store(shape(text, f"dag{number}", tasks=tasks, **fields))
            self.limits[dag.dag_id] = (dag.max_active_runs, dag.max_active_tasks)
            for run in range(runs):
                trigger(dag, 1, now=self.now, prefix=f"r{run}_", logical_date=self.now - timedelta(days=runs - run))
        for _ in range(self.schedulers_wanted):
            self.start_scheduler()
        return self

    def start_scheduler(self) -> None:
        job = Job.objects.create(job_type="SchedulerJob", start_date=self.now, latest_heartbeat=self.now)
        executor = WorldExecutor(self, slots=5)
        executor.start(job.pk)
        self.schedulers.append(Scheduler(job.pk, executor, Loop(self.phases, monotonic=self._monotonic)))

    def _monotonic(self) -> float:
        return (self.now - T0).total_seconds()

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    # ── a step ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def step(self) -> None:
        """One actor does one thing; then the invariants are checked."""
        self.step_number += 1
        actors: list[tuple[int, Callable[[], str]]] = [
            (60, self._scheduler_phase),
            (20, self._attempt_begins),
            (20, self._attempt_ends),
            (12, self._time_passes),
        ]
        if self.faults:
            actors += [
                (2, self._attempt_dies),
                (2, self._attempt_hangs),
                (2, self._attempt_comes_back),
                (1, self._scheduler_dies),
                (2, self._person_clears),
                (1, self._person_pauses),
                (1, self._person_marks),
                (1, self._person_resizes_a_pool),
                (2, self._person_backfills),
            ]
        weights, things = zip(*actors, strict=True)
        thing = self.rng.choices(things, weights)[0]
        self.history.append(f"{self.step_number} +{self._monotonic():.0f}s {thing.__name__}: {thing()}")
        self.check()

    def finish(self, most_passes: int = 4000) -> None:
        """No more faults: everything must come to an end in bounded time (I3), without the safety sweep."""
        self.faults = False
        if not any(scheduler.alive for scheduler in self.schedulers):
            self.start_scheduler()
        db.execute("UPDATE scheduler_dag SET is_paused = false WHERE is_paused")
        Wake.objects.add(DagRun.objects.filter(state="running").values_list("pk", flat=True), "unpaused", self.now)
        Backfill.objects.update(is_paused=False)
        Pool.objects.filter(pool="narrow").update(slots=3)
        Pool.objects.filter(pool="default_pool").update(slots=6)
        for _ in range(most_passes):
            for scheduler in self.schedulers:
                if scheduler.alive:
                    scheduler.loop.tick(self._tick(scheduler))
            for attempt in list(self.attempts):
                if attempt.life == "alive":
                    self._begin(attempt) if attempt.claim is None else self._end(attempt, "success")
            self._beat()
            self._person_forgives()
            self.check()
            under_way = DagRun.objects.exclude(state__in=states.RUN_FINISHED).exists()
            if not under_way and not Backfill.objects.unfinished().exists():
                self._check_the_end()
                return
            self.now += timedelta(seconds=5)
        left = DagRun.objects.exclude(state__in=states.RUN_FINISHED).values_list("dag_id", "run_id", "state")
        self.fail("I3", f"these runs never ended: {list(left)}; {self._open_tasks()}")

    # ── actors ───────────────────────────────────────────────────────────────────────────────────────────────────────
    def _tick(self, scheduler: Scheduler) -> Tick:
        return Tick(
            now=self.now,
            job_id=scheduler.job_id,
            conf=conf(),
            executors={scheduler.executor.name: scheduler.executor},
            rng=self.rng,
            limit=self.rng.choice([1, 3, 50, 512]),
        )

    def _scheduler_phase(self) -> str:
        alive = [scheduler for scheduler in self.schedulers if scheduler.alive]
        if not alive:
            self.start_scheduler()
            return "a new scheduler"
        scheduler = self.rng.choice(alive)
        phase = self.phases[scheduler.at % len(self.phases)]
        scheduler.at += 1
        tick = self._tick(scheduler)
        if self.faults and phase.atomic and self.rng.random() < 0.04:
            try:
                with db.atomic():
                    phase.run(tick)
                    raise Stopped
            except Stopped:
                scheduler.alive = False
                return f"{scheduler.job_id} {phase.name} killed before its commit"
        changed = scheduler.loop.run_phase(phase, tick)
        if self.faults and phase.name == "queue_tasks" and changed and self.rng.random() < 0.05:
            scheduler.alive = False
            return f"{scheduler.job_id} {phase.name}: {changed}, killed before it could hand out"
        return f"{scheduler.job_id} {phase.name}: {changed}"

    def _pick(self, *, begun: bool, lives: tuple[str, ...] = ("alive",)) -> Attempt | None:
        fitting = [a for a in self.attempts if a.life in lives and (a.claim is not None) == begun]
        return self.rng.choice(fitting) if fitting else None

    def _attempt_begins(self) -> str:
        attempt = self._pick(begun=False)
        return "none" if attempt is None else self._begin(attempt)

    def _begin(self, attempt: Attempt) -> str:
        claimed = claims.claim([attempt.ti_id], [attempt.fence], self.now, claims.Worker(attempt.owner, "world", "u"))
        if not claimed:
            self.attempts.remove(attempt)
            return f"{attempt.ti_id}/{attempt.fence} refused"
        key = (attempt.ti_id, attempt.fence)
        if key in self.started:
            self.fail("I1", f"hand-out {key} started twice")
        self.started.add(key)
        attempt.claim = claimed[0]
        return f"{key}"

    def _attempt_ends(self) -> str:
        attempt = self._pick(begun=True)
        return (
            "none"
            if attempt is None
            else self._end(attempt, self.rng.choices(["success", "failed", "skipped"], [8, 2, 1])[0])
        )

    def _end(self, attempt: Attempt, state: str) -> str:
        assert attempt.claim is not None
        self.attempts.remove(attempt)
        before = self._ended(attempt.ti_id)
        document = {"op": "outcome", "state": state, "error": {"type": "Error", "message": "boom"}}
        written = outcomes.write([outcomes.Report(attempt.claim, document)], self.now)
        if before and self._ended(attempt.ti_id) != before:
            self.fail("I10", f"an attempt changed the ended task instance {attempt.ti_id} from {before}")
        return f"{attempt.ti_id}/{attempt.fence} {state} ({'written' if written else 'refused'})"

    def _ended(self, ti_id: int) -> tuple[str, int] | None:
        row = TaskInstance.objects.filter(pk=ti_id).values_list("state", "fence").first()
        return row if row and row[0] in states.FINISHED else None  # type: ignore[return-value]

    def _attempt_dies(self) -> str:
        """Its process is gone; its executor may notice (and say so) or not."""
        attempt = self.rng.choice(self.attempts) if self.attempts else None
        if attempt is None:
            return "none"
        self.attempts.remove(attempt)
        told = self.rng.random() < 0.5
        for scheduler in self.schedulers:
            if told and scheduler.job_id == attempt.owner and scheduler.alive:
                scheduler.executor.gone.append(Lost(attempt.ti_id, attempt.fence, "Its process was killed."))
        return f"{attempt.ti_id}/{attempt.fence} {'told' if told else 'silently'}"

    def _attempt_hangs(self) -> str:
        attempt = self._pick(begun=True)
        if attempt is None:
            return "none"
        attempt.life = "hangs"
        return f"{attempt.ti_id}/{attempt.fence}"

    def _attempt_comes_back(self) -> str:
        """Late: its row may have moved on. Whatever it writes then must match nothing."""
        attempt = self._pick(begun=True, lives=("hangs",))
        return "none" if attempt is None else self._end(attempt, "success")

    def _scheduler_dies(self) -> str:
        alive = [scheduler for scheduler in self.schedulers if scheduler.alive]
        if not alive:
            return "none"
        scheduler = self.rng.choice(alive)
        scheduler.alive = False
        # its local attempts go with it, those that it had handed out and that had not begun too
        self.attempts = [attempt for attempt in self.attempts if attempt.owner != scheduler.job_id]
        return f"{scheduler.job_id}"

    def _time_passes(self) -> str:
        self.now += timedelta(seconds=self.rng.choice([0.01, 0.5, 1, 3, 10, 20]))
        self._beat()
        return ""

    def _beat(self) -> None:
        """Living processes say that they live."""
        jobs = [scheduler.job_id for scheduler in self.schedulers if scheduler.alive]
        Job.objects.filter(pk__in=jobs, state="running").update(latest_heartbeat=self.now)
        for scheduler in self.schedulers:
            # one that was counted as dead while time jumped stops by itself, as its lease tells it
            if scheduler.alive and not Job.objects.filter(pk=scheduler.job_id, state="running").exists():
                scheduler.alive = False
        alive = [(a.ti_id, a.fence) for a in self.attempts if a.life == "alive" and a.claim is not None]
        if alive:
            db.execute(
                "UPDATE scheduler_task_instance ti SET heartbeat_at = %s FROM unnest(%s::bigint[], %s::bigint[])"
                " AS w(id, fence) WHERE ti.id = w.id AND ti.fence = w.fence AND ti.state IN ('running', 'restarting')",
                [self.now, [a[0] for a in alive], [a[1] for a in alive]],
            )

    def _person_clears(self) -> str:
        """Clears one task instance, finished or running, and its run, as the action does."""
        rows = list(
            TaskInstance.objects.filter(state__in=["success", "failed", "running"], dag_run__clear_number__lt=2)
            .order_by("pk")
            .values_list("pk", "state", "dag_run_id", "try_number")
        )
        if not rows:
            return "none"
        key, state, run, tries = self.rng.choice(rows)
        with db.atomic():
            DagRun.objects.select_for_update(no_key=True).get(pk=run)
            verb = "restart" if state == "running" else "clear"
            transitions.tasks(verb, [key], self.now, max_tries=tries + 2)
            if DagRun.objects.get(pk=run).state in states.RUN_FINISHED:
                transitions.runs("clear", [run], self.now)
        return f"{verb} {key}"

    def _person_pauses(self) -> str:
        dag = DagModel.objects.order_by("dag_id")[self.rng.randrange(len(DAGS))]
        with db.atomic():
            DagModel.objects.filter(pk=dag.pk).update(is_paused=not dag.is_paused)
            if dag.is_paused:
                running = DagRun.objects.filter(dag=dag, state="running").values_list("pk", flat=True)
                Wake.objects.add(running, "unpaused", self.now)
        return f"{dag.dag_id} {'unpaused' if dag.is_paused else 'paused'}"

    def _person_marks(self) -> str:
        keys = list(TaskInstance.objects.filter(state="running").order_by("pk").values_list("pk", flat=True))
        if not keys:
            return "none"
        key = self.rng.choice(keys)
        transitions.tasks(
            self.rng.choice(["mark_success", "mark_failed"]), [key], self.now, reason="marked by a person"
        )
        return f"{key}"

    def _person_forgives(self) -> None:
        """A failed task on whose success the next run depends blocks that run until a person says that it is good."""
        failed = TaskInstance.objects.filter(dag_id="dag4", task_id="t", dag_run__state__in=states.RUN_FINISHED)
        bad = failed.exclude(state__in=["success", "skipped"]).order_by("pk").values_list("pk", flat=True)
        transitions.tasks("mark_success", list(bad), self.now, reason="forgiven by a person")

    def _person_resizes_a_pool(self) -> str:
        slots = self.rng.choice([2, 4, 6, 9])
        Pool.objects.filter(pool="default_pool").update(slots=slots)
        return f"{slots}"

    def _person_backfills(self) -> str:
        """Asks for a backfill, or pauses, goes on with or cancels the one that is under way."""
        row = Backfill.objects.unfinished().first()
        if row is None:
            wanted = backfills.Wanted(
                BACKFILLED,
                T0 - timedelta(days=self.rng.choice([3, 5, 8])),
                T0 - timedelta(days=1),
                reprocess_behavior=self.rng.choice(["none", "failed", "completed"]),
                reverse=self.rng.random() < 0.5,
                max_active_runs=self.rng.choice([1, 2]),
            )
            return f"create {backfills.create(PERSON, wanted, self.now).pk}"
        if self.rng.random() < 0.3:
            backfills.cancel(PERSON, row.pk, self.now)
            return f"cancel {row.pk}"
        backfills.set_paused(PERSON, row.pk, not row.is_paused, self.now)
        return f"{'unpause' if row.is_paused else 'pause'} {row.pk}"

    # ── invariants ───────────────────────────────────────────────────────────────────────────────────────────────────
    def check(self) -> None:
        """I2 for every limit that nobody lowers; I1 and I10 are checked where attempts begin and end."""
        for dag_id, running in db.fetch(
            "SELECT dag_id, count(*) FROM scheduler_dag_run WHERE state = 'running' AND backfill_id IS NULL"
            " GROUP BY dag_id"
        ):
            if running > self.limits[dag_id][0]:
                self.fail("I2", f"{running} runs of {dag_id} run, its max_active_runs is {self.limits[dag_id][0]}")
        for key, running, limit in db.fetch(
            "SELECT b.id, count(*), b.max_active_runs FROM scheduler_backfill b"
            " JOIN scheduler_dag_run r ON r.backfill_id = b.id AND r.state = 'running' GROUP BY b.id"
        ):
            if running > limit:
                self.fail("I2", f"{running} runs of backfill {key} run, its max_active_runs is {limit}")
        for run, dag_id, active in db.fetch(
            "SELECT dag_run_id, dag_id, count(*) FROM scheduler_task_instance"
            " WHERE state IN ('queued', 'running', 'restarting', 'deferred') GROUP BY 1, 2"
        ):
            if active > self.limits[dag_id][1]:
                self.fail("I2", f"{active} tasks of run {run} are active, max_active_tasks is {self.limits[dag_id][1]}")
        used = db.fetch(
            "SELECT coalesce(sum(pool_slots), 0) FROM scheduler_task_instance"
            " WHERE pool = 'narrow' AND state IN ('queued', 'running', 'restarting')"
        )[0][0]
        if used > 3:
            self.fail("I2", f"pool narrow has 3 slots, {used} are taken")

    def _check_the_end(self) -> None:
        open_tasks = self._open_tasks()
        if open_tasks:
            self.fail("I3", f"all runs ended, but these task instances did not: {open_tasks}")
        slots = list(BackfillSlot.objects.filter(outcome__isnull=True).values_list("backfill_id", "ordinal"))
        if slots:
            self.fail("I3", f"nobody decided on these slots of backfills: {slots}")
        overdue = list(
            Deadline.objects.filter(missed_at__isnull=True, due_at__lte=self.now).values_list("pk", "due_at")
        )
        if overdue:
            self.fail("I3", f"nobody looked at these deadlines when their time came: {overdue}")
        missed = Deadline.objects.filter(missed_at__isnull=False).count()
        asked = Callback.objects.filter(kind="deadline").count()
        if missed != asked:
            self.fail("I8", f"{missed} deadlines were missed, and {asked} callbacks are stored")

    def _open_tasks(self) -> list[Any]:
        return list(
            TaskInstance.objects.exclude(state__in=states.FINISHED).values_list(
                "pk", "dag_id", "task_id", "dag_run__run_id", "state", "fence"
            )[:20]
        )

    def fail(self, invariant: str, text: str) -> None:
        steps = "\n  ".join(self.history[-25:])
        raise Violation(f"{invariant}, seed {self.seed}, step {self.step_number}: {text}\n  {steps}")
