"""What the schedulers have to do: five DAGs that meet every limit, and many runs of each."""

from __future__ import annotations

from scheduler_app.engine.dag import Dag
from scheduler_app.models import Limit, Pool, db
from tests import rows
from tests.shapes import shape

RETRIES = {"retries": 40, "retry_delay": 0.0}
NARROW = {"pool": "narrow", "pool_slots": 2, **RETRIES}
WAREHOUSE = {"name": "warehouse", "units": 2}
CALLS = {"name": "calls", "units": 1}
#: Two units at once of seven, beside what the narrow ones take; and so many calls in a window.
KEYED = {
    **{f"k{n}": {"limits": (WAREHOUSE,), **RETRIES} for n in range(3)},
    "call": {"limits": (WAREHOUSE, CALLS), **RETRIES},
}
#: Each DAG, and its part of the runs.
DAGS: tuple[tuple[Dag, float], ...] = (
    (shape("a >> b >> c", "chain", {"*": RETRIES}, max_active_runs=25), 0.3),
    (
        shape(
            "first >> [w0, w1, w2, w3] >> last",
            "pooled",
            {"*": RETRIES, **{f"w{n}": NARROW for n in range(4)}},
            max_active_runs=12,
            max_active_tasks=3,
        ),
        0.2,
    ),
    (
        shape("x; y", "shared", {"*": RETRIES, "x": {**RETRIES, "max_active_tis_per_dag": 3}}, max_active_runs=30),
        0.25,
    ),
    (
        shape(
            "fan >> end",
            "mapped",
            {
                "*": RETRIES,
                "fan": {
                    **RETRIES,
                    "max_active_tis_per_dagrun": 2,
                    "mapped": {"style": "expand", "inputs": {"n": {"literal": 4}}},
                },
            },
            max_active_runs=15,
        ),
        0.15,
    ),
    (shape("[k0, k1, k2] >> call", "keyed", KEYED, max_active_runs=20), 0.1),
)


def lay_out(runs: int) -> None:
    """Stores the DAGs, the pools, the keyed limits and so many queued runs."""
    Pool.objects.update_or_create(pool="default_pool", defaults={"slots": 40})
    Pool.objects.update_or_create(pool="narrow", defaults={"slots": 9})
    Limit.objects.update_or_create(name="warehouse", defaults={"amount": 7})
    Limit.objects.update_or_create(name="calls", defaults={"amount": 5, "per_seconds": 1.0})
    for dag, part in DAGS:
        rows.trigger(rows.store(dag), max(1, round(runs * part)), now=db.clock())
