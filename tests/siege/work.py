"""What the schedulers have to do: four DAGs that meet every limit, and many runs of each."""

from __future__ import annotations

from scheduler_app.engine.dag import Dag
from scheduler_app.models import Pool, db
from tests import rows
from tests.shapes import shape

RETRIES = {"retries": 40, "retry_delay": 0.0}
NARROW = {"pool": "narrow", "pool_slots": 2, **RETRIES}
#: Each DAG, and its part of the runs.
DAGS: tuple[tuple[Dag, float], ...] = (
    (shape("a >> b >> c", "chain", {"*": RETRIES}, max_active_runs=25), 0.4),
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
)


def lay_out(runs: int) -> None:
    """Stores the DAGs, the pools and so many queued runs."""
    Pool.objects.update_or_create(pool="default_pool", defaults={"slots": 40})
    Pool.objects.update_or_create(pool="narrow", defaults={"slots": 9})
    for dag, part in DAGS:
        rows.trigger(rows.store(dag), max(1, round(runs * part)), now=db.clock())
