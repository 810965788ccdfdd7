"""Plays seeds: an empty database, a world, so many steps with faults, then a quiet end."""

from __future__ import annotations

from scheduler_app import metrics
from scheduler_app.models import db, graphs

from .world import World

#: Everything that a world writes, in an order that foreign keys allow.
TABLES = (
    "scheduler_wake",
    "scheduler_dag_wake",
    "scheduler_deadline",
    "scheduler_backfill_slot",
    "scheduler_backfill",
    "scheduler_callback",
    "scheduler_xcom",
    "scheduler_task_instance_history",
    "scheduler_task_instance",
    "scheduler_dag_run",
    "scheduler_dag_version",
    "scheduler_dag",
    "scheduler_job",
)


def play(seed: int, steps: int = 300, schedulers: int = 2) -> World:
    """One seed. Raises Violation; the caller holds a transaction or a database that may be emptied."""
    for table in TABLES:
        db.execute(f"DELETE FROM {table}")
    for table in ("task_instance", "dag_run", "backfill", "job"):
        db.execute(f"ALTER SEQUENCE scheduler_{table}_id_seq RESTART")
    graphs.forget()
    swept = metrics.SWEPT._value.get()
    world = World(seed, schedulers).build()
    for _ in range(steps):
        world.step()
    world.finish()
    if metrics.SWEPT._value.get() != swept:
        world.fail("I3", "the safety sweep had to find a run that no wake announced")
    return world
