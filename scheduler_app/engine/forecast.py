"""What would run when: DAGs, pools and slots played forward on a virtual clock, and which limit makes whom wait.

It begins with an idle house. Every task is taken to succeed after its usual time, a mapped one to have one instance, a
branch to take every way, and a run that is cancelled to end at once, without its teardowns. Runs start in the order of
their slots as ``max_active_runs`` lets them; tasks get slots from ``engine.admission``, in the order that the scheduler
uses. What happens at one instant happens in the order of the loop's phases, so that the same task comes first here and
there.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.engine.admission import Candidate, Refusal, Room, admit
from scheduler_app.engine.graph import Graph
from scheduler_app.engine.limits import Allowance, decode, of_documents
from scheduler_app.engine.order import fair_order
from scheduler_app.engine.run_plans import MISFIRE_GRACE_SECONDS, Misfire, RunPlan

#: Task instances that one forecast plays.
MOST_TASKS = 20_000
#: The code of a run that waits for its DAG's ``max_active_runs``; tasks wait for the codes of ``engine.admission``.
RUNS = "max_active_runs"


@dataclass(frozen=True, slots=True)
class Planned:
    """A DAG of the forecast: its runs, oldest first, and how long each task usually takes (seconds)."""

    graph: Graph
    plans: Sequence[RunPlan]
    max_active_runs: int
    max_active_tasks: int
    seconds: Mapping[str, float]
    #: of slots that fell due while ``max_active_runs`` were under way, as of those that nobody made in time
    misfire: Misfire = "all"
    misfire_limit: int | None = None
    #: of a slot that is due while ``max_active_runs`` are under way: queue | skip | cancel_oldest
    overlap: str = "queue"


@dataclass(slots=True)
class Timed:
    """A run (``task_id`` None) or a task of one: when it could have begun, when it did, when it ended.

    ``waits``: seconds by the code of the limit that it waited for.
    """

    dag_id: str
    slot: datetime
    task_id: str | None
    ready_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    waits: dict[str, float] = field(default_factory=dict)
    #: a slot that gets no run: when there was room again, a later one was due
    missed: bool = False
    #: its run was cancelled to make room for a later one
    cancelled: bool = False

    @property
    def waited_seconds(self) -> float:
        return sum(self.waits.values())

    @property
    def bound_by(self) -> str | None:
        """The limit that it waited for longest."""
        return max(self.waits, key=lambda code: (self.waits[code], code), default=None)


class TooMuch(ValueError):
    """More task instances than a forecast plays."""


def forecast(
    dags: Iterable[Planned],
    pools: Mapping[str, int],
    slots: int,
    limits: Mapping[str, Allowance] | None = None,
    *,
    now: datetime | None = None,
    max_active_tasks_per: Any = "run",
    wide_after_seconds: float = 60.0,
    ageing_seconds: float = 0.0,
) -> list[Timed]:
    """Every run and every task of the plans, in the order in which they began (what can never begin comes last).

    ``pools``: slots by name, -1 = without limit; ``slots``: of the executors; ``limits``: keyed ones, unused.
    Slots that were missed run ``now`` (None: at their own time). Slots are kept for a wide task that has waited for
    ``wide_after_seconds``.

    TooMuch says how to ask for less.
    """
    given = list(dags)
    count = sum(len(dag.plans) * len(dag.graph.tasks) for dag in given)
    if count > MOST_TASKS:
        raise TooMuch(f"{count} task instances are more than the {MOST_TASKS} of a forecast: name DAGs, or fewer days.")
    room = Room(
        pool_slots=dict(pools),
        executors={None: slots},
        limits=dict(limits or {}),
        max_active_tasks_per=max_active_tasks_per,
    )
    world = _World(room, wide_after_seconds, ageing_seconds)
    for dag in given:
        for plan in dag.plans:
            world.expect(dag, plan, plan.due if now is None else max(plan.due, now))
    world.play()
    far = datetime.max.replace(tzinfo=next((one.ready_at.tzinfo for one in world.timed), None))
    return sorted(world.timed, key=lambda one: (one.started_at or far, one.ready_at, one.dag_id, one.task_id or ""))


@dataclass(slots=True, eq=False)
class _Run:
    dag: Planned
    timed: Timed
    #: task → upstream tasks that have not ended
    missing: dict[str, int]
    unfinished: int
    #: task → its place in the file
    places: Mapping[str, int]
    #: in the order in which runs are made
    number: int = 0
    #: its tasks that run
    begun: list[_Task] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Task:
    run: _Run
    task_id: str
    timed: Timed
    candidate: Candidate
    priority_weight: int

    @property
    def id(self) -> int:
        return int(self.candidate.id)

    @property
    def dag_id(self) -> str:
        return self.timed.dag_id

    @property
    def scheduled_when(self) -> datetime:
        return self.timed.ready_at


class _World:
    def __init__(self, room: Room, wide_after: float, ageing: float) -> None:
        self.room, self.wide_after, self.ageing = room, wide_after, ageing
        self.timed: list[Timed] = []
        #: a run that is due, a task that ends, or nothing: a rate that has room again
        self.events: list[tuple[datetime, int, _Run | _Task | None]] = []
        self.rate_at: datetime | None = None
        self.number = 0
        self.runs = 0
        self.places: dict[str, dict[str, int]] = {}
        self.queued: dict[str, list[_Run]] = defaultdict(list)
        #: oldest first
        self.running: dict[str, list[_Run]] = defaultdict(list)
        self.waiting: list[_Task] = []
        self.refused: dict[int, str] = {}
        self.seen: datetime | None = None

    def expect(self, dag: Planned, plan: RunPlan, due: datetime) -> None:
        timed = Timed(dag.graph.dag.dag_id, plan.run_after, None, due)
        self.timed.append(timed)
        missing = {task_id: len(above) for task_id, above in dag.graph.upstream.items()}
        places = self.places.setdefault(timed.dag_id, {task_id: n for n, task_id in enumerate(dag.graph.tasks)})
        self._at(due, _Run(dag, timed, missing, len(missing), places))

    def play(self) -> None:
        while self.events:
            now = self.events[0][0]
            self._count_waits(now)
            ended: list[_Task] = []
            while self.events and self.events[0][0] == now:
                what = heapq.heappop(self.events)[2]
                if isinstance(what, _Run):
                    self.queued[what.timed.dag_id].append(what)
                elif what is not None and not what.timed.cancelled:
                    self._free(what)
                    ended.append(what)
            self._pass(ended, now)
        for task in self.waiting:  # nothing that happens will ever let them begin
            task.timed.waits.setdefault(self.refused[task.candidate.id], 0.0)
        for run in (run for runs in self.queued.values() for run in runs):
            run.timed.waits.setdefault(RUNS, 0.0)

    @staticmethod
    def _without_missed(runs: list[_Run], now: datetime) -> list[_Run]:
        """Of the slots that fell due while there was no room, those that get a run after all."""
        dag = runs[0].dag
        if dag.misfire == "latest":
            return runs[-1:]
        if dag.misfire == "skip":
            return [run for run in runs if run.timed.ready_at >= now - timedelta(seconds=MISFIRE_GRACE_SECONDS)]
        return runs[-dag.misfire_limit :] if dag.misfire_limit else runs

    def _pass(self, ended: Sequence[_Task], now: datetime) -> None:
        """The loop's passes at one instant: runs start, those that end make room for others at the next pass."""
        self._start_runs(now)
        for task in ended:
            self._over(task, now)
        while self._admit(now) or self._start_runs(now):
            pass  # the loop goes on while a pass has changed something

    def _at(self, when: datetime, what: _Run | _Task | None) -> None:
        self.number += 1
        heapq.heappush(self.events, (when, self.number, what))

    def _count_waits(self, now: datetime) -> None:
        """The time since the last event was waited for what refused then."""
        passed = (now - self.seen).total_seconds() if self.seen is not None else 0.0
        self.seen = now
        if not passed:
            return
        for task in self.waiting:
            code = self.refused[task.candidate.id]
            task.timed.waits[code] = task.timed.waits.get(code, 0.0) + passed
        for runs in self.queued.values():
            for run in runs:
                run.timed.waits[RUNS] = run.timed.waits.get(RUNS, 0.0) + passed

    def _start_runs(self, now: datetime) -> int:
        started = 0
        for dag_id, runs in sorted(self.queued.items()):
            if runs and (self._has_room(runs[0]) or runs[0].dag.overlap == "cancel_oldest"):
                kept = self._without_missed(runs, now)
                for run in runs[: len(runs) - len(kept)]:
                    run.timed.missed = True
                runs[:] = kept
            while runs and self._may_start(runs, now):
                run = runs.pop(0)
                started += 1
                self.runs += 1
                self.running[dag_id].append(run)
                run.timed.started_at, run.number = now, self.runs
                for task_id in run.dag.graph.roots:
                    self._ready(run, task_id, now)
                if not run.unfinished:
                    self._end_run(run, now)
        return started

    def _has_room(self, run: _Run) -> bool:
        return len(self.running[run.timed.dag_id]) < run.dag.max_active_runs

    def _may_start(self, runs: list[_Run], now: datetime) -> bool:
        """Whether the first of them starts now; without room its DAG's ``overlap`` says what becomes of it."""
        first = runs[0]
        if self._has_room(first):
            return True
        if first.dag.overlap == "skip":
            for run in runs:
                run.timed.missed = True
            runs.clear()
        elif first.dag.overlap == "cancel_oldest":
            self._cancel(self.running[first.timed.dag_id][0], now)
            return True
        return False

    def _cancel(self, run: _Run, now: datetime) -> None:
        for task in run.begun:
            self._free(task)
            task.timed.cancelled, task.timed.ended_at = True, now
        self.waiting = [task for task in self.waiting if task.run is not run]
        run.timed.cancelled = True
        self._end_run(run, now)

    def _ready(self, run: _Run, task_id: str, now: datetime) -> None:
        task = run.dag.graph.tasks[task_id]
        timed = Timed(run.timed.dag_id, run.timed.slot, task_id, now)
        self.timed.append(timed)
        candidate = Candidate(
            id=run.number * MOST_TASKS + run.places[task_id],
            dag_id=run.timed.dag_id,
            run_id=id(run),
            task_id=task_id,
            pool=task.pool,
            pool_slots=task.pool_slots,
            max_active_tasks=run.dag.max_active_tasks,
            max_active_tis_per_dag=task.max_active_tis_per_dag,
            max_active_tis_per_dagrun=task.max_active_tis_per_dagrun,
            limits=decode(of_documents(task.limits)) if task.limits else (),
        )
        made = _Task(run, task_id, timed, candidate, run.dag.graph.weights[task_id])
        if task.is_empty:
            timed.started_at = now
            self._over(made, now)
        else:
            self.waiting.append(made)

    def _admit(self, now: datetime) -> int:
        self._forget(now)
        overdue = now - timedelta(seconds=self.wide_after)
        answer = admit(
            [
                task.candidate._replace(overdue=task.timed.ready_at <= overdue)
                for task in fair_order(self.waiting, self.ageing)
            ],
            self.room,
        )
        self.room.reserved.clear()
        self.room.limits_reserved.clear()
        admitted = set(answer.admitted)
        self.refused = {key: refusal.code for key, refusal in answer.refused}
        for task in self.waiting:
            if task.candidate.id in admitted:
                task.timed.started_at = now
                self._at(now + timedelta(seconds=max(task.run.dag.seconds[task.task_id], 0.001)), task)
                self._take(task, now)
                task.run.begun.append(task)
        self.waiting = [task for task in self.waiting if task.candidate.id not in admitted]
        self._expect(answer.refused, now)
        return len(admitted)

    def _forget(self, now: datetime) -> None:
        """What has left the window of a rate."""
        for limit in self.room.limits.values():
            if limit.per_seconds is not None and limit.taken:
                since = now - timedelta(seconds=limit.per_seconds)
                limit.taken = [(at, units) for at, units in limit.taken if at > since]
                limit.used = sum(units for _, units in limit.taken)

    def _take(self, task: _Task, now: datetime) -> None:
        for name, units in task.candidate.limits:
            if self.room.limits[name].per_seconds is not None:
                self.room.limits[name].taken.append((now, units))

    def _expect(self, refused: Iterable[tuple[Any, Refusal]], now: datetime) -> None:
        """One look at the first moment at which a rate has room again."""
        waits = [
            self.room.limits[refusal.facts["name"]].free_at(refusal.facts["needs"])
            for _, refusal in refused
            if refusal.code == "rate_full"
        ]
        first = min((at for at in waits if at is not None), default=None)
        if first is not None and (self.rate_at is None or self.rate_at <= now or first < self.rate_at):
            self.rate_at = first
            self._at(first, None)

    def _free(self, task: _Task) -> None:
        c, room = task.candidate, self.room
        room.pool_used[c.pool] -= c.pool_slots
        room.executors[c.executor] += 1
        room.runs[c.run_id] -= 1
        room.dags[c.dag_id] -= 1
        room.tasks[c.dag_id, c.task_id] -= 1
        room.run_tasks[c.run_id, c.task_id] -= 1
        for name, units in c.limits:
            if room.limits[name].per_seconds is None:
                room.limits[name].used -= units

    def _over(self, task: _Task, now: datetime) -> None:
        run = task.run
        if run.timed.cancelled:
            return
        if task in run.begun:
            run.begun.remove(task)
        task.timed.ended_at = now
        run.unfinished -= 1
        for follower in run.dag.graph.downstream[task.task_id]:
            run.missing[follower] -= 1
            if not run.missing[follower]:
                self._ready(run, follower, now)
        if not run.unfinished and run.timed.ended_at is None:
            self._end_run(run, now)

    def _end_run(self, run: _Run, now: datetime) -> None:
        run.timed.ended_at = now
        self.running[run.timed.dag_id].remove(run)
