"""Put a runner together from the settings: in a process of its own, or inside an executor of the tests."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

from scheduler_app.conf import Conf
from scheduler_app.engine.resources import Resources
from scheduler_app.log_store import stores
from scheduler_app.log_store.keeper import Keeper
from scheduler_app.log_store.pieces import ATTEMPT
from scheduler_app.runner.contract import Listener, Options
from scheduler_app.runner.identity import Identity
from scheduler_app.runner.loop import Runner
from scheduler_app.runner.sources import Sources
from scheduler_app.supervisor.child import Clocks
from scheduler_app.supervisor.children import Children, Limits
from scheduler_app.supervisor.events import Events


def clocks() -> Clocks:
    """The clocks of this process: its logs carry its own time, as every program's do; rows carry the database's."""
    return Clocks(time.monotonic, lambda: datetime.now(UTC))


def children(values: Conf, events: Events) -> Children:
    """The children of one runner."""
    megabyte = 1024 * 1024
    limits = Limits(
        max_message_bytes=values.max_message_mb * megabyte,
        import_timeout_seconds=values.parse_timeout_seconds,
        zygote_memory_bytes=values.zygote_memory_mb * megabyte,
        zygote_max_age_seconds=values.zygote_max_age_seconds,
    )
    return Children(events, clocks(), os.environ, limits)


def runner(
    values: Conf,
    events: Events,
    its_children: Children,
    identity: Identity,
    slots: int,
    listener: Listener,
    *,
    own_sources: bool = False,
    keeper: Keeper | None = None,
) -> Runner:
    """`own_sources`: DAG files come from the database; else they are where the DAG processor found them."""
    options = Options(
        slots=slots,
        log_folder=values.log_folder,
        heartbeat_seconds=values.task_heartbeat_seconds,
        heartbeat_timeout_seconds=values.task_heartbeat_timeout_seconds,
        kill_grace_seconds=values.kill_grace_seconds,
        interrupted=values.interrupted_tasks,
        limits=Resources(values.task_memory_mb, values.task_cpu_seconds, values.task_open_files),
    )
    its_sources = None
    if own_sources:
        its_sources = Sources(
            values.home.absolute() / "sources",
            follow_newest=values.runs_follow_newest_version,
            readable_by_all=bool(values.task_user),
        )
    return Runner(events, its_children, clocks(), identity, options, listener, its_sources, keeper)


def keeper(values: Conf, *, is_worker: bool) -> Keeper:
    """Of the logs of one runner; on each machine that has runners one of them sees to old logs too."""
    own = clocks()
    store = stores.of_writers(values, is_worker=is_worker)
    return Keeper(values, store, ATTEMPT, own.wall, own.monotonic, sweeps=True)
