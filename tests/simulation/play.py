"""Plays seeds: an empty database, a world, so many steps with faults, then a quiet end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from scheduler_app.models import Pool, db, graphs, guard

from . import ledger, poison
from .aside import Aside
from .world import World

#: Everything that a world writes, in an order that foreign keys allow.
TABLES = (
    "scheduler_limit_use",
    "scheduler_limit",
    "scheduler_wake",
    "scheduler_dag_wake",
    "scheduler_deadline",
    "scheduler_backfill_slot",
    "scheduler_backfill",
    "scheduler_callback",
    "scheduler_xcom",
    "scheduler_asset_event_run",
    "scheduler_asset_queued_event",
    "scheduler_partition_event",
    "scheduler_asset_event",
    "scheduler_asset_use",
    "scheduler_asset_alias_asset",
    "scheduler_asset_alias",
    "scheduler_asset",
    "scheduler_trigger",
    "scheduler_audit",
    "scheduler_task_instance_history",
    "scheduler_task_instance",
    "scheduler_dag_run",
    "scheduler_dag_version",
    "scheduler_dag_file",
    "scheduler_dag_warning",
    "scheduler_dag",
    "scheduler_job",
)
_SEQUENCES = ("task_instance", "dag_run", "backfill", "job", "trigger", "asset", "asset_event", "deadline")
_EMPTY = "; ".join(
    [*(f"DELETE FROM {table}" for table in TABLES)]
    + [f"ALTER SEQUENCE scheduler_{name}_id_seq RESTART" for name in _SEQUENCES]
)


@contextlib.contextmanager
def stage() -> Iterator[Aside]:
    """Installs what watches the database, and the second connection. All is committed; at the end all is gone."""
    guard.install()
    db.execute(ledger.INSTALL)
    aside = Aside()
    try:
        with poison.poisonable():
            yield aside
    finally:
        aside.close()
        db.execute(f"{_EMPTY}; {ledger.REMOVE}")
        Pool.objects.exclude(pool="default_pool").delete()
        Pool.objects.update(slots=128)


def opened(seed: int, aside: Aside, schedulers: int = 2, wanted: Sequence[str] = ()) -> World:
    """A new world in an empty database; these DAGs play in any case."""
    aside.abandon()
    db.execute(f"{_EMPTY}; TRUNCATE simulation_ledger RESTART IDENTITY")
    graphs.forget()
    poison.forget()
    return World(seed, schedulers, wanted=wanted).build(aside)


def play(world: World, steps: int = 300) -> World:
    """So many steps, then the quiet end. Raises Violation."""
    for _ in range(steps):
        world.step()
    world.finish()
    return world
