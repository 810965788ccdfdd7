"""The scheduled rows that one admission looks at, page by page, and what it made of them (I2, I4).

The first page is the head of the global order, read from the task instances alone. Behind it the keys (pool, keyed
limits, run) are walked by a loose index scan: what surely has no room (its pool, limit, run, task or executor) is
dropped there, and whatever comes back is judged by ``engine.admission``, so that nothing runnable is ever hidden behind
what is blocked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.engine.admission import Candidate, Refusal, Room, admit
from scheduler_app.engine.limits import decode, first_obstacle
from scheduler_app.engine.order import fair_order
from scheduler_app.models import db
from scheduler_app.models.prepared import all_of
from scheduler_app.scheduler.tick import Tick

#: Rows that one key brings at a time.
ROWS_PER_KEY = 64
#: Pages of resumed tasks that go before the others: the rows of one admission are bounded, however many wait.
RESUMED_PAGES = 8
#: Keys that are looked at together.
KEYS = 512
#: More slots than any task asks for.
ANY_WIDTH = 2**31 - 1


class Ready(NamedTuple):
    """A scheduled row, in the order of ``_COLUMNS``."""

    id: int
    dag_id: str
    run_id: int
    task_id: str
    pool: str
    pool_slots: int
    executor: str | None
    max_active_tis_per_dag: int | None
    max_active_tis_per_dagrun: int | None
    limits: str
    priority_weight: int
    scheduled_when: datetime
    held_at: datetime | None
    held_until: datetime | None

    def held(self, now: datetime) -> bool:
        return self.held_at is not None and (self.held_until is None or self.held_until > now)


class Key(NamedTuple):
    pool: str
    #: what its rows take of keyed limits, in one text
    limits: str
    dag_id: str
    run_id: int


_NAMES = (
    *("id", "dag_id", "dag_run_id", "task_id", "pool", "pool_slots", "executor"),
    *(
        "max_active_tis_per_dag",
        "max_active_tis_per_dagrun",
        "limits",
        "priority_weight",
        "scheduled_when",
        "held_at",
        "held_until",
    ),
)
_COLUMNS = ", ".join(_NAMES)
_ORDER = "priority_weight DESC, scheduled_when, id"
_FIRST_PAGE = (
    f"SELECT {_COLUMNS} FROM scheduler_task_instance WHERE state = 'scheduled' ORDER BY {_ORDER} LIMIT %(limit)s"
)
#: With those that the look of this transaction found ready, as if it had written them.
_FIRST_PAGE_AND_READY = f"""
({_FIRST_PAGE}) UNION ALL
SELECT {_COLUMNS.replace("scheduled_when", "%(now)s::timestamptz")}
FROM (SELECT * FROM unnest(%(ready)s::bigint[]) {all_of("%(ready)s::bigint[]")}) AS w(ready)
JOIN scheduler_task_instance ti ON ti.id = w.ready
"""
#: The priorities that scheduled rows have, each found by one step in the index.
_WEIGHTS = """
WITH RECURSIVE weights AS (
    (SELECT priority_weight FROM scheduler_task_instance WHERE state = 'scheduled'
     ORDER BY priority_weight DESC LIMIT 1)
    UNION ALL
    SELECT next.priority_weight FROM weights CROSS JOIN LATERAL (
        SELECT t.priority_weight FROM scheduler_task_instance t
        WHERE t.state = 'scheduled' AND t.priority_weight < weights.priority_weight
        ORDER BY t.priority_weight DESC LIMIT 1
    ) next
)
SELECT priority_weight FROM weights
"""
#: Those of each priority that have waited longest: with ageing the head of the order is among them.
_OLDEST = f"""
SELECT {", ".join(f"t.{name}" for name in _NAMES)} FROM unnest(%(weights)s::int[]) AS w(weight)
CROSS JOIN LATERAL (
    SELECT * FROM scheduler_task_instance WHERE state = 'scheduled' AND priority_weight = w.weight
    ORDER BY scheduled_when, id LIMIT %(each)s
) t
"""
#: Deferred ones whose trigger fired: they held a limit, or a slot of a pool that counts deferred ones (BC-09).
_RESUMED = f"""
SELECT {_COLUMNS} FROM scheduler_task_instance
WHERE state = 'scheduled' AND next_method IS NOT NULL AND (limits <> '' OR pool = ANY(%(pools)s)) ORDER BY {_ORDER}
LIMIT %(most)s
"""
_RUNNING = "SELECT id FROM scheduler_dag_run WHERE id = ANY(%(runs)s) AND state = 'running'"
#: What scheduled rows of these pools take of keyed limits, each found by one step in the index.
_SETS = """
SELECT p.pool, k.limits
FROM unnest(%(pools)s::text[]) AS p(pool)
CROSS JOIN LATERAL (
    WITH RECURSIVE sets AS (
        (SELECT t.limits FROM scheduler_task_instance t
         WHERE t.state = 'scheduled' AND t.pool = p.pool ORDER BY t.limits LIMIT 1)
        UNION ALL
        SELECT next.limits FROM sets CROSS JOIN LATERAL (
            SELECT t.limits FROM scheduler_task_instance t
            WHERE t.state = 'scheduled' AND t.pool = p.pool AND t.limits > sets.limits ORDER BY t.limits LIMIT 1
        ) next
    )
    SELECT limits FROM sets
) k
"""
#: The keys that have scheduled rows, each found by one step in the index, behind a (DAG, run) for each (pool, limits).
_KEYS = """
SELECT p.pool, p.limits, k.dag_id, k.dag_run_id
FROM unnest(%(pools)s::text[], %(limits)s::text[], %(dags)s::text[], %(runs)s::bigint[]) AS p(pool, limits, dag_id, run)
CROSS JOIN LATERAL (
    WITH RECURSIVE keys AS (
        (SELECT t.dag_id, t.dag_run_id FROM scheduler_task_instance t
         WHERE t.state = 'scheduled' AND t.pool = p.pool AND t.limits = p.limits
           AND (t.dag_id, t.dag_run_id) > (p.dag_id, p.run)
         ORDER BY t.dag_id, t.dag_run_id LIMIT 1)
        UNION ALL
        SELECT next.dag_id, next.dag_run_id FROM keys CROSS JOIN LATERAL (
            SELECT t.dag_id, t.dag_run_id FROM scheduler_task_instance t
            WHERE t.state = 'scheduled' AND t.pool = p.pool AND t.limits = p.limits
              AND (t.dag_id, t.dag_run_id) > (keys.dag_id, keys.dag_run_id)
            ORDER BY t.dag_id, t.dag_run_id LIMIT 1
        ) next
    )
    SELECT dag_id, dag_run_id FROM keys
) k
LIMIT %(limit)s
"""
#: Rows of keys, without those that one limit surely refuses at the counts of this admission.
_OF_KEYS = f"""
SELECT {", ".join(f"t.{name}" for name in _NAMES)}
FROM unnest(%(pools)s::text[], %(limits)s::text[], %(dags)s::text[], %(runs)s::bigint[], %(widths)s::int[])
     AS k(pool, limits, dag_id, run, width)
CROSS JOIN LATERAL (
    SELECT * FROM scheduler_task_instance
    WHERE state = 'scheduled' AND pool = k.pool AND limits = k.limits AND dag_id = k.dag_id AND dag_run_id = k.run
      AND pool_slots <= k.width
      AND id <> ALL(%(seen)s::bigint[])
      AND (k.dag_id || chr(31) || task_id) <> ALL(%(full_in_dag)s::text[])
      AND (k.run || chr(31) || task_id) <> ALL(%(full_in_run)s::text[])
      AND coalesce(executor, %(default)s) = ANY(%(executors)s::text[])
      AND (held_at IS NULL OR held_until <= %(now)s)
    ORDER BY {_ORDER} LIMIT %(rows)s
) t
"""
#: Of these runs, the ones whose tasks may be handed out at all.
_OPEN_RUNS = """
SELECT r.id, d.max_active_tasks FROM scheduler_dag_run r
CROSS JOIN LATERAL (SELECT * FROM scheduler_dag WHERE dag_id = r.dag_id OFFSET 0) d
WHERE r.id = ANY(%(runs)s) AND r.state = 'running' AND NOT d.is_paused AND NOT d.is_stale
  AND (r.held_at IS NULL OR r.held_until <= %(now)s)
"""


class Pages:
    """One admission: what was admitted and refused so far, and the room that is left."""

    def __init__(self, room: Room, tick: Tick, keeping_pools: Sequence[str]) -> None:
        """``keeping_pools``: those that keep a slot for the time of a deferral."""
        self.room, self.tick, self.keeping_pools = room, tick, keeping_pools
        self.default = next(iter(tick.executors))
        self.ageing_seconds = tick.conf.priority_ageing_seconds
        self.admitted: list[int] = []
        self.refused: dict[int, Refusal] = {}
        #: when time alone gives one of those that a rate refused its turn
        self.due_at: datetime | None = None
        #: what the admitted take of keyed limits
        self.taken: dict[int, str] = {}
        self._seen: set[int] = set()
        #: what no other row of the same kind needs to be asked about any more
        self._shut_runs: set[int] = set()
        self._shut_dags: set[str] = set()
        self._full_in_dag: set[tuple[str, str]] = set()
        self._full_in_run: set[tuple[int, str]] = set()

    def admit_resumed(self) -> None:
        """Those that held a slot while they were deferred go first, and keep it while they cannot go (BC-09).

        One whose run was queued again keeps nothing: its run may wait for runs that wait for that very slot. Nor do
        those behind the first ``RESUMED_PAGES`` pages: they take their turn with everybody.
        """
        if not self.keeping_pools and not self.room.limits:
            return
        params = {"pools": list(self.keeping_pools), "most": RESUMED_PAGES * self.tick.limit}
        rows = _ready(db.fetch(_RESUMED, params, keep_plan=True))
        self._admit(rows)
        admitted = set(self.admitted)
        waiting = [row for row in rows if row.id not in admitted]
        if waiting:
            going_on = {key for (key,) in db.fetch(_RUNNING, {"runs": [row.run_id for row in waiting]})}
            for row in waiting:
                if row.run_id in going_on:
                    self._keep(row)

    def _keep(self, row: Ready) -> None:
        if row.pool in self.keeping_pools:
            self.room.pool_used[row.pool] = self.room.pool_used.get(row.pool, 0) + row.pool_slots
        for name, units in decode(row.limits):
            limit = self.room.limits.get(name)
            if limit is not None and limit.per_seconds is None:
                limit.charge(units)

    def admit_first(self) -> bool:
        """The head of the global order; whether rows behind it may have room that these could not use."""
        page, before = self._first_page(), len(self.admitted)
        written = [row for row in page if row.id not in self.tick.ready]
        is_full = len(written) == self.tick.limit
        if is_full:
            page = written  # what lies behind them may come before those that are not written yet
        self._admit([row for row in page if row.id not in self._seen])
        return (is_full or self.ageing_seconds > 0) and len(self.admitted) - before < len(page)

    def _first_page(self) -> list[Ready]:
        params = {"limit": self.tick.limit, "now": self.tick.now, "ready": self.tick.ready}
        if not self.ageing_seconds:
            return _ready(db.fetch(_FIRST_PAGE_AND_READY if self.tick.ready else _FIRST_PAGE, params, keep_plan=True))
        weights = [row[0] for row in db.fetch(_WEIGHTS)]
        each = -(-self.tick.limit // max(1, len(weights)))
        return _ready(db.fetch(_OLDEST, {"weights": weights, "each": each})) if weights else []

    def admit_behind(self) -> None:
        """Rows behind the first page, of the keys that may have room, until there is none."""
        place = dict.fromkeys(self._open_sets(), ("", 0))
        while place and self._has_executor():
            keys = self._keys(place)
            if len(keys) < KEYS:
                place = {}
            else:
                last = keys[-1][:2]
                place = {which: at for which, at in place.items() if which >= last}
                place[last] = keys[-1][2:]
            self._admit_keys(self._open_keys(keys))

    def _admit_keys(self, keys: Sequence[Key]) -> None:
        """A wide task is asked once whatever its pool and limits have free, so that slots are kept for it; then only
        what fits."""
        widths = {key.pool: ANY_WIDTH for key in keys}
        while keys and self._has_executor():
            rows = self._rows(keys, widths)
            if not rows:
                return
            self._admit(rows)
            keys = [key for key in keys if not self._is_shut(key) and self._fits(key)]
            widths = {key.pool: self._free(key.pool) for key in keys}

    def _keys(self, place: dict[tuple[str, str], tuple[str, int]]) -> list[Key]:
        sets = sorted(place)
        params = {
            "pools": [pool for pool, _ in sets],
            "limits": [limits for _, limits in sets],
            "dags": [place[which][0] for which in sets],
            "runs": [place[which][1] for which in sets],
            "limit": KEYS,
        }
        return [Key(*row) for row in db.fetch(_KEYS, params)]

    def _open_keys(self, keys: Sequence[Key]) -> list[Key]:
        """Those whose run may hand out at all and has not reached its limit."""
        limits = self._limits({key.run_id for key in keys} - self._shut_runs)
        per_run = self.room.max_active_tasks_per == "run"
        for key in keys:
            used = self.room.runs.get(key.run_id, 0) if per_run else self.room.dags.get(key.dag_id, 0)
            if used >= limits.get(key.run_id, 0):
                self._shut_runs.add(key.run_id)
        return [key for key in keys if not self._is_shut(key)]

    def _rows(self, keys: Sequence[Key], widths: dict[str, int]) -> list[Ready]:
        params = {
            "pools": [key.pool for key in keys],
            "limits": [key.limits for key in keys],
            "dags": [key.dag_id for key in keys],
            "runs": [key.run_id for key in keys],
            "widths": [widths[key.pool] for key in keys],
            "seen": list(self._seen),
            "full_in_dag": [f"{dag}\x1f{task}" for dag, task in self._full_in_dag],
            "full_in_run": [f"{run}\x1f{task}" for run, task in self._full_in_run],
            "default": self.default,
            "executors": [name or self.default for name, free in self.room.executors.items() if free > 0],
            "now": self.tick.now,
            "rows": ROWS_PER_KEY,
        }
        return _ready(db.fetch(_OF_KEYS, params))

    def _admit(self, page: Sequence[Ready]) -> None:
        """One page through ``engine.admission``, in the global order, without the rows whose run stands still."""
        if not page:
            return
        self._seen.update(row.id for row in page)
        limits = self._limits({row.run_id for row in page})
        rows = {
            row.id: row
            for row in fair_order(page, self.ageing_seconds)
            if row.run_id in limits and not row.held(self.tick.now)
        }
        admission = admit((self._candidate(row, limits[row.run_id]) for row in rows.values()), self.room)
        self.admitted += admission.admitted
        self.taken |= {key: rows[key].limits for key in admission.admitted if rows[key].limits}
        for key, refusal in admission.refused:
            self.refused[key] = refusal
            if refusal.code == "rate_full":
                self._expect(refusal.until, refusal.facts["per_seconds"])
            self._shut(rows[key], refusal.code)

    def _candidate(self, row: Ready, max_active_tasks: int) -> Candidate:
        overdue = self.tick.now - timedelta(seconds=self.tick.conf.wide_task_wait_seconds)
        return Candidate(
            id=row.id,
            dag_id=row.dag_id,
            run_id=row.run_id,
            task_id=row.task_id,
            pool=row.pool,
            pool_slots=row.pool_slots,
            executor=None if row.executor == self.default else row.executor,
            max_active_tasks=max_active_tasks,
            max_active_tis_per_dag=row.max_active_tis_per_dag,
            max_active_tis_per_dagrun=row.max_active_tis_per_dagrun,
            limits=decode(row.limits) if row.limits else (),
            overdue=row.scheduled_when <= overdue,
        )

    def _limits(self, run_ids: set[int]) -> dict[int, int]:
        """``max_active_tasks`` of those runs that may hand out; the others need not be asked about again."""
        limits = {run_id: limit for run_id, limit in self.tick.open_runs.items() if run_id in run_ids}
        params = {"runs": list(run_ids - limits.keys()), "now": self.tick.now}
        if params["runs"]:
            limits.update(db.fetch(_OPEN_RUNS, params, keep_plan=True))
        self._shut_runs |= run_ids - limits.keys()
        return limits

    def _shut(self, row: Ready, code: str) -> None:
        if code == "max_active_tasks":
            if self.room.max_active_tasks_per == "run":
                self._shut_runs.add(row.run_id)
            else:
                self._shut_dags.add(row.dag_id)
        elif code == "max_active_tis_per_dag":
            self._full_in_dag.add((row.dag_id, row.task_id))
        elif code == "max_active_tis_per_dagrun":
            self._full_in_run.add((row.run_id, row.task_id))

    def _is_shut(self, key: Key) -> bool:
        stands = key.run_id in self._shut_runs or key.dag_id in self._shut_dags or self._free(key.pool) < 1
        return stands or not self._has_units(key.limits)

    def _open_sets(self) -> list[tuple[str, str]]:
        """(pool, limits) of scheduled rows where both may have room."""
        pools = [pool for pool in self.room.pool_slots if self._free(pool) > 0]
        if not self.room.limits:
            return [(pool, "") for pool in pools]
        return [(pool, limits) for pool, limits in db.fetch(_SETS, {"pools": pools}) if self._has_units(limits)]

    def _has_units(self, limits: str) -> bool:
        """Whether each limit exists and has something free; what waits for a rate is noted."""
        for name, _ in decode(limits):
            limit = self.room.limits.get(name)
            if limit is None or name in self.room.limits_reserved:
                return False
            if limit.lacks(1):
                if limit.per_seconds is not None and limit.amount:
                    self._expect(limit.free_at(1), limit.per_seconds)
                return False
        return True

    def _fits(self, key: Key) -> bool:
        return not key.limits or first_obstacle(decode(key.limits), self.room.limits) is None

    def _expect(self, until: datetime | None, per_seconds: float) -> None:
        """The loop need not wait longer than that. Without a time, what has just been taken has to leave the window."""
        at = until or self.tick.now + timedelta(seconds=per_seconds)
        self.due_at = at if self.due_at is None else min(at, self.due_at)

    def _free(self, pool: str) -> int:
        """Slots that a task which waits for no reservation could have."""
        total = self.room.pool_slots.get(pool, 0)
        if total < 0:
            return ANY_WIDTH
        return 0 if pool in self.room.reserved else total - self.room.pool_used.get(pool, 0)

    def _has_executor(self) -> bool:
        return any(free > 0 for free in self.room.executors.values())


def _ready(rows: Iterable[tuple[object, ...]]) -> list[Ready]:
    return [Ready(*row) for row in rows]  # type: ignore[arg-type]
