"""Who gets a slot now: candidates in one global order, every counter charged row by row.

A candidate that one limit refuses charges nothing, so it hides nobody behind it; the one exception is a wide task that
has waited long, for which its pool's free slots are kept (else narrow tasks would take them for ever). Which states
count against which limit is said by ``states.ACTIVE`` and ``states.OCCUPYING``; the counters come from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

from scheduler_app.engine.limits import Allowance, Take, first_obstacle
from scheduler_app.engine.wording import counted


class Candidate(NamedTuple):
    """A scheduled task instance that wants a slot."""

    id: Any
    dag_id: str
    run_id: Any
    task_id: str
    pool: str
    pool_slots: int = 1
    #: name of the executor; None = the default one
    executor: str | None = None
    #: the DAG's ``max_active_tasks``; 0 = no limit
    max_active_tasks: int = 0
    max_active_tis_per_dag: int | None = None
    max_active_tis_per_dagrun: int | None = None
    #: what it takes of the keyed limits
    limits: tuple[Take, ...] = ()
    #: it has been scheduled for so long that free slots of its pool and limits are kept for it, if it is wide
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a candidate got no slot. ``never``: no end of another task changes it; the instance should fail by it.

    ``until``: when time alone takes the obstacle away (a rate).
    """

    code: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)
    never: bool = False
    until: datetime | None = None


class Admission(NamedTuple):
    admitted: list[Any]
    refused: list[tuple[Any, Refusal]]


@dataclass(slots=True)
class Room:
    """Counters at the time of asking; ``admit`` charges copies of the caller's dicts. A missing count means 0."""

    #: pool → slots in all (-1 = without limit), and slots in use
    pool_slots: dict[str, int]
    #: executor name (None = the default one) → free slots
    executors: dict[str | None, int]
    pool_used: dict[str, int] = field(default_factory=dict)
    #: active instances by run, by DAG, by (DAG, task), by (run, task)
    runs: dict[Any, int] = field(default_factory=dict)
    dags: dict[str, int] = field(default_factory=dict)
    tasks: dict[tuple[str, str], int] = field(default_factory=dict)
    run_tasks: dict[tuple[Any, str], int] = field(default_factory=dict)
    #: keyed limits by name
    limits: dict[str, Allowance] = field(default_factory=dict)
    #: what ``max_active_tasks`` counts: the instances of a run (Airflow 3) or of the DAG (Airflow 2)
    max_active_tasks_per: Literal["run", "dag"] = "run"
    #: pool → the overdue wide instance for which its free slots are kept
    reserved: dict[str, Any] = field(default_factory=dict)
    #: keyed limit → the overdue instance that takes several units, for which what is free of it is kept
    limits_reserved: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("executors", "pool_used", "runs", "dags", "tasks", "run_tasks", "reserved", "limits_reserved"):
            setattr(self, name, dict(getattr(self, name)))
        self.limits = {name: replace(limit) for name, limit in self.limits.items()}

    def charge(self, c: Candidate) -> None:
        """Count one admitted candidate everywhere."""
        self.pool_used[c.pool] = self.pool_used.get(c.pool, 0) + c.pool_slots
        self.executors[c.executor] -= 1
        self.runs[c.run_id] = self.runs.get(c.run_id, 0) + 1
        self.dags[c.dag_id] = self.dags.get(c.dag_id, 0) + 1
        self.tasks[c.dag_id, c.task_id] = self.tasks.get((c.dag_id, c.task_id), 0) + 1
        self.run_tasks[c.run_id, c.task_id] = self.run_tasks.get((c.run_id, c.task_id), 0) + 1
        for name, units in c.limits:
            self.limits[name].charge(units)


def admit(candidates: Iterable[Candidate], room: Room) -> Admission:
    """Go through the candidates in their order (priority, rank within the DAG, age, id) and give out what there is.

    Every candidate is answered: its id is in ``admitted``, or in ``refused`` with the first limit that is in its way.
    """
    admission = Admission([], [])
    for candidate in candidates:
        refusal = refuse(candidate, room)
        if refusal is None:
            room.charge(candidate)
            admission.admitted.append(candidate.id)
        else:
            admission.refused.append((candidate.id, refusal))
    return admission


def refuse(c: Candidate, room: Room) -> Refusal | None:
    """What is in a candidate's way, or None. Its pool and the keyed limits come last, so that slots are kept only for
    an overdue wide candidate that nothing else holds back."""
    total = room.pool_slots.get(c.pool)
    if total is None:
        text = f"Pool {c.pool} does not exist: create it, or give the task another pool."
        return Refusal("pool_unknown", text, {"pool": c.pool})
    if 0 <= total < c.pool_slots:
        return _too_wide(c, total)
    refusal = _refuse_by_limit(c, room) or _refuse_by_executor(c, room)
    if refusal is not None:
        return refusal
    by_pool = _refuse_by_pool(c, room, total)
    by_key = _refuse_by_keyed_limit(c, room) if c.limits else None
    if c.overdue:
        _reserve(c, room, by_pool, by_key)
    return by_key or by_pool


def _reserve(c: Candidate, room: Room, by_pool: Refusal | None, by_key: Refusal | None) -> None:
    """Keeps what is free for a candidate that needs several and waited long, unless something of another kind holds it
    back: what is kept would lie idle for as long as that lasts."""
    wide_in_pool = by_pool is not None and by_pool.code == "pool_full" and c.pool_slots > 1
    wide_in_limit = by_key is not None and by_key.code in ("limit_full", "rate_full") and by_key.facts["needs"] > 1
    if wide_in_pool and (by_key is None or wide_in_limit):
        room.reserved[c.pool] = c.id
    if wide_in_limit and by_key is not None and (by_pool is None or wide_in_pool):
        room.limits_reserved[by_key.facts["name"]] = c.id


def _too_wide(c: Candidate, total: int) -> Refusal:
    text = f"It can never run: it needs {c.pool_slots} slots of pool {c.pool}, which has {total}."
    return Refusal("pool_too_small", text, {"pool": c.pool, "slots": total, "needs": c.pool_slots}, never=True)


def _refuse_by_limit(c: Candidate, room: Room) -> Refusal | None:
    if c.max_active_tasks:
        per_run = room.max_active_tasks_per == "run"
        used = room.runs.get(c.run_id, 0) if per_run else room.dags.get(c.dag_id, 0)
        if used >= c.max_active_tasks:
            whose = "its run" if per_run else f"DAG {c.dag_id}"
            return _full("max_active_tasks", f"{counted(used, 'active task')} of {whose}", c.max_active_tasks, used)
    if c.max_active_tis_per_dag is not None:
        used = room.tasks.get((c.dag_id, c.task_id), 0)
        if used >= c.max_active_tis_per_dag:
            what = f"{counted(used, 'active instance')} of task {c.task_id} in all runs"
            return _full("max_active_tis_per_dag", what, c.max_active_tis_per_dag, used)
    if c.max_active_tis_per_dagrun is not None:
        used = room.run_tasks.get((c.run_id, c.task_id), 0)
        if used >= c.max_active_tis_per_dagrun:
            what = f"{counted(used, 'active instance')} of task {c.task_id} in its run"
            return _full("max_active_tis_per_dagrun", what, c.max_active_tis_per_dagrun, used)
    return None


def _refuse_by_executor(c: Candidate, room: Room) -> Refusal | None:
    name = c.executor or "the default executor"
    free = room.executors.get(c.executor)
    if free is None:
        text = f"No running scheduler has the executor {name}: start one that has, or give the task another."
        return Refusal("executor_unknown", text, {"executor": c.executor})
    if free <= 0:
        return Refusal("executor_full", f"It waits for a free slot of {name}.", {"executor": c.executor, "free": free})
    return None


def _refuse_by_pool(c: Candidate, room: Room, total: int) -> Refusal | None:
    if total < 0:
        return None
    used = room.pool_used.get(c.pool, 0)
    facts = {"pool": c.pool, "slots": total, "used": used, "needs": c.pool_slots}
    holder = room.reserved.get(c.pool)
    if holder is not None and holder != c.id:
        text = (
            f"The free slots of pool {c.pool} are kept for task instance {holder}, which needs several and waited long."
        )
        return Refusal("pool_reserved", text, {**facts, "reserved_for": holder})
    if used + c.pool_slots <= total:
        return None
    text = f"Pool {c.pool} has {max(total - used, 0)} of {total} slots free; it needs {c.pool_slots}."
    return Refusal("pool_full", text, facts)


def _refuse_by_keyed_limit(c: Candidate, room: Room) -> Refusal | None:
    for name, _ in c.limits:
        holder = room.limits_reserved.get(name)
        if holder is not None and holder != c.id:
            text = (
                f"What is free of limit {name} is kept for task instance {holder}, which takes several and waited long."
            )
            return Refusal("limit_reserved", text, {"name": name, "reserved_for": holder})
    obstacle = first_obstacle(c.limits, room.limits)
    return None if obstacle is None else Refusal(*obstacle)


def _full(code: str, what: str, limit: int, used: int) -> Refusal:
    return Refusal(code, f"{what[0].upper()}{what[1:]}, and {code} is {limit}.", {"limit": limit, "used": used})
