"""A scene: stored DAGs, one or more schedulers in virtual time, and an executor that only writes down what it is given.

``tick`` runs the whole table, ``phase`` single phases; ``begin``, ``end`` and ``die`` play the attempts through the
runner's own statements. Time is ``now`` and moves by ``wait`` alone.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.conf import conf
from scheduler_app.engine.dag import Dag
from scheduler_app.executors.base import Executor, HandOut, Lost
from scheduler_app.models import DagModel, DagRun, Job, Pool, TaskInstance, graphs
from scheduler_app.runner import claims, outcomes
from scheduler_app.scheduler.loop import PHASES, Loop
from scheduler_app.scheduler.tick import Tick
from tests import rows
from tests.shapes import shape


class Ledger(Executor):
    """Takes whatever it is handed and keeps it in ``handed``; ``slots`` is what it says of its free slots."""

    def __init__(self, slots: int, name: str = "Ledger") -> None:
        self.name, self.slots = name, slots
        self.handed: list[HandOut] = []
        self.gone: list[Lost] = []
        #: raised by the next ``accept``, after or before it has taken the batch
        self.fails: Exception | None = None
        self.takes_before_it_fails = False
        self.refuses = False

    def start(self, job_id: int) -> None:
        return None

    def slots_available(self) -> int:
        return self.slots

    def accept(self, batch: Sequence[HandOut]) -> list[HandOut]:
        if self.fails is not None and not self.takes_before_it_fails:
            raise self.fails
        if self.refuses:
            return list(batch)
        self.handed += batch
        if self.fails is not None:
            raise self.fails
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


class Scene:
    def __init__(self, slots: int = 10_000, now: datetime = rows.T0) -> None:
        self.now = now
        self.conf = conf()
        self.executor = Ledger(slots)
        self.executors: dict[str, Executor] = {self.executor.name: self.executor}
        self.limit = self.conf.max_tis_per_query
        self.job = self.new_job()
        self.loop = Loop(monotonic=lambda: (self.now - rows.T0).total_seconds())
        self.claims: dict[int, claims.Claim] = {}
        rows.default_pool(10_000)
        graphs.forget()

    # ── what there is ────────────────────────────────────────────────────────────────────────────────────────────────
    def set(self, **knobs: Any) -> None:
        """Settings of this scene's schedulers."""
        self.conf = replace(self.conf, **knobs)

    def new_job(self) -> Job:
        return Job.objects.create(job_type="SchedulerJob", start_date=self.now, latest_heartbeat=self.now)

    def dag(self, dag: Dag | str, dag_id: str = "dag", *, row: dict[str, Any] | None = None, **fields: Any) -> DagModel:
        """A stored, unpaused DAG from a value or from the text of ``shape``; ``row`` = columns of its row."""
        return rows.store(shape(dag, dag_id, **fields) if isinstance(dag, str) else dag, **(row or {}))

    def pool(self, name: str, slots: int, **fields: Any) -> Pool:
        return Pool.objects.update_or_create(pool=name, defaults={"slots": slots, **fields})[0]

    def runs(self, dag: DagModel, count: int, **fields: Any) -> list[DagRun]:
        return rows.trigger(dag, count, now=self.now, **fields)

    def run(self, dag: DagModel | Dag | str, **fields: Any) -> DagRun:
        """One queued run of a DAG (stored first when it is a text or a value)."""
        return self.runs(dag if isinstance(dag, DagModel) else self.dag(dag), 1, **fields)[0]

    def task(self, run: DagRun, task_id: str, map_index: int = -1) -> TaskInstance:
        return TaskInstance.objects.get(dag_run=run, task_id=task_id, map_index=map_index)

    def states(self, run: DagRun) -> dict[str, str | None]:
        return rows.states(run)

    def counts(self, **filters: Any) -> dict[str | None, int]:
        """How many task instances are in which state."""
        return dict(Counter(TaskInstance.objects.filter(**filters).values_list("state", flat=True)))

    def run_states(self, dag: DagModel) -> list[str]:
        """States of a DAG's runs, oldest first."""
        return list(DagRun.objects.filter(dag=dag).order_by("run_after", "pk").values_list("state", flat=True))

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────────
    def wait(self, seconds: float, *, beats: bool = True) -> None:
        """Time passes; the scheduler and the attempts that live say so at its end (``beats`` false: nobody does)."""
        self.now += timedelta(seconds=seconds)
        if beats:
            Job.objects.filter(pk=self.job.pk, state="running").update(latest_heartbeat=self.now)
            TaskInstance.objects.filter(state__in=["running", "restarting"]).update(heartbeat_at=self.now)

    def a_tick(self, job: Job | None = None) -> Tick:
        return Tick(
            now=self.now,
            job_id=(job or self.job).pk,
            conf=self.conf,
            executors=self.executors,
            rng=random.Random(0),
            limit=self.limit,
        )

    def tick(self, times: int = 1) -> int:
        """So many passes of the whole table; what they changed."""
        return sum(self.loop.tick(self.a_tick()) for _ in range(times))

    def settle(self, most: int = 50) -> None:
        """Passes until nothing changes any more (timers that find nothing included)."""
        for _ in range(most):
            if not self.tick():
                return
        raise AssertionError(f"The loop still finds work after {most} passes")

    def phase(self, *names: str, job: Job | None = None) -> int:
        """Single phases, whatever the probe says; what the last one changed."""
        table = {phase.name: phase for phase in PHASES}
        changed = 0
        for name in names:
            changed = self.loop.run_phase(table[name], self.a_tick(job))
        return changed

    def handed(self) -> list[str]:
        """Task ids that the executor was given, in order."""
        names = dict(TaskInstance.objects.values_list("pk", "task_id"))
        return [names[hand_out.ti_id] for hand_out in self.executor.handed]

    def begin(self, *tasks: TaskInstance, fence: int | None = None) -> int:
        """Attempts start; how many of their claims held."""
        held = 0
        for task in tasks:
            number = TaskInstance.objects.get(pk=task.pk).fence if fence is None else fence
            for claim in claims.claim([task.pk], [number], self.now, claims.Worker(0, "host", "user")):
                self.claims[claim.ti_id] = claim
                held += 1
        return held

    def end(self, *tasks: TaskInstance, state: str = "success", **outcome: Any) -> int:
        """Attempts report; how many reports were still their row's own."""
        document = {"op": "outcome", "state": state, **outcome}
        reports = [outcomes.Report(self.claims[task.pk], document) for task in tasks]
        return len(outcomes.write(reports, self.now))

    def die(self, task: TaskInstance, reason: str = "Its process was killed by signal 9.") -> None:
        """The process is gone, and the executor will say so."""
        self.executor.gone.append(Lost(task.pk, TaskInstance.objects.get(pk=task.pk).fence, reason))

    def play(self, run: DagRun, **ends: str) -> None:
        """Ticks, begins and ends (success unless said otherwise) until the run has ended."""
        for _ in range(100):
            self.tick()
            queued = list(TaskInstance.objects.filter(dag_run=run, state="queued").order_by("pk"))
            self.begin(*queued)
            for task in queued:
                self.end(task, state=ends.get(task.task_id, "success"))
            run.refresh_from_db()
            if run.state in ("success", "failed"):
                return
        raise AssertionError(f"{run} did not end: {self.states(run)}")
