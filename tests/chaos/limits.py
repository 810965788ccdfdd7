"""Was any limit passed? The database writes every change of a state down; they are read in the order of commits.

A transaction that takes a slot saw the commits that freed it, so their commit times are smaller: in that order the sums
are what each commit left behind (I2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

#: Of ``dags/ledger.py`` with LEDGER_MIX.
POOLS = {"narrow": 4, "default_pool": 128}
MAX_ACTIVE_TASKS = 24
PER_TASK = {"spread": 5}

ACTIVE = frozenset({"queued", "running", "restarting"})

JOURNAL = """
CREATE TABLE chaos_move (
    id bigserial, xid xid DEFAULT pg_current_xact_id()::xid, ti bigint, run bigint, task text, pool text, slots int,
    before text, after text);
CREATE FUNCTION chaos_write_down() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO chaos_move (ti, run, task, pool, slots, before, after)
    VALUES (new.id, new.dag_run_id, new.task_id, new.pool, new.pool_slots, old.state, new.state);
    RETURN NULL;
END $$;
CREATE TRIGGER chaos_journal AFTER UPDATE OF state ON scheduler_task_instance FOR EACH ROW
    WHEN (old.state IS DISTINCT FROM new.state) EXECUTE FUNCTION chaos_write_down();
INSERT INTO scheduler_pool (pool, slots, include_deferred) VALUES ('narrow', 4, false);
"""
_MOVES = """
SELECT xid::text, run, task, pool, slots, coalesce(before, ''), coalesce(after, '') FROM chaos_move
ORDER BY pg_xact_commit_timestamp(xid), xid::text, id
"""

Move = tuple[Any, ...]
Key = tuple[str, Any]


def judge(ask: Callable[..., list[Move]]) -> tuple[int, int]:
    """How many commits left more in use than a limit allows, and how many slots are in use at the end."""
    return replay(ask(_MOVES))


def replay(moves: Iterable[Move]) -> tuple[int, int]:
    """As :func:`judge`, from rows of (transaction, run, task, pool, slots, before, after) in the order of commits."""
    used: Counter[Key] = Counter()
    over = 0
    changed: Counter[Key] = Counter()
    current = None
    for xid, run, task, pool, slots, before, after in [*moves, (None, 0, "", "", 0, "", "")]:
        if xid != current:
            used.update(changed)
            over += sum(1 for key, more in changed.items() if more > 0 and used[key] > limit_of(key))
            changed, current = Counter(), xid
        step = (after in ACTIVE) - (before in ACTIVE)
        if step:
            changed[("pool", pool)] += step * slots
            changed[("run", run)] += step
            changed[("task", task)] += step
    return over, sum(count for key, count in used.items() if key[0] == "pool")


def limit_of(key: Key) -> float:
    kind, name = key
    if kind == "pool":
        return POOLS.get(name, float("inf"))
    return MAX_ACTIVE_TASKS if kind == "run" else PER_TASK.get(name, float("inf"))
