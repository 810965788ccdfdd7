"""Harm without end: every few seconds somebody is killed, until the work is done all the same.

Everything that a siege harms is its own: database, broker, processes. Each kind of harm comes once before any comes
again; the order is the seed's.
"""

from __future__ import annotations

import contextlib
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import own
from .house import House
from .play import Accounts, play, prepared

#: A message that is not acknowledged in this time is delivered again; one task runs for longer.
VISIBILITY_SECONDS = 6
#: … and for longer than the consumer time-out of ``own.rabbitmq``, since it is left in peace when all others are done
LONG_SECONDS = 25.0
#: Attempts are killed again and again: what is asked is that nothing is lost or doubled, not how many tries it took.
MIX = {
    "LEDGER_MIX": "1",
    "LEDGER_RETRIES": "60",
    "LEDGER_LONG": str(LONG_SECONDS),
    "SCHEDULER_CELERY_VISIBILITY_TIMEOUT_SECONDS": str(VISIBILITY_SECONDS),
}

Harm = Callable[[], None]


@dataclass
class Siege:
    """``broker``: kind of URL (``redis``, ``amqp``), empty for local executors. ``every``: seconds between two harms.

    ``most``: after so many harms the work is left alone. ``say`` hears of each.
    """

    tasks: int
    seconds: float
    every: float
    seed: int
    broker: str = ""
    away_seconds: float = 10.0
    most: int = 1_000_000
    say: Callable[[str], None] = lambda text: None
    harmed: Counter[str] = field(default_factory=Counter)

    def run(self) -> Accounts:
        with tempfile.TemporaryDirectory(prefix="besieged-") as name, contextlib.ExitStack() as services:
            folder = Path(name)
            folder.chmod(0o755)  # the database's own user must reach its cluster
            database = own.Database(folder / "db")
            services.callback(database.close)
            broker = services.enter_context(own.broker(self.broker, folder / "broker")) if self.broker else None
            prepared(database.url, journal=True)
            return play(
                database.url,
                tasks=self.tasks,
                seconds=self.seconds,
                schedulers=2,
                broker=broker.url if broker else "",
                harm=lambda house: self._besiege(house, database, broker),
                limit_seconds=300 + self.tasks,
                more=MIX,
            )

    def _besiege(self, house: House, database: own.Database, broker: own.Broker | None) -> None:
        rng = random.Random(self.seed)
        began = time.monotonic()
        for name, harm in _rounds(self._harms(house, database, broker, rng), rng):
            ended = len({task for what, task, _, _ in house.entries() if what == "end"})
            if ended >= self.tasks - 1 or self.harmed.total() >= self.most:
                return
            house.check()
            with contextlib.suppress(LookupError, ValueError):  # a victim that is still starting is spared
                harm()
                self.harmed[name] += 1
                self.say(f"{time.monotonic() - began:.0f} s: {ended} of {self.tasks} tasks have ended; harmed: {name}")
            time.sleep(self.every)

    def _harms(
        self, house: House, database: own.Database, broker: own.Broker | None, rng: random.Random
    ) -> dict[str, Harm]:
        holders = [name for name in house.processes if name.startswith("worker" if broker else "scheduler")]
        harms: dict[str, Harm] = {name: _restart(house, name) for name in house.processes}
        for name in holders:
            harms[f"runner of {name}"] = lambda name=name: house.kill_with_children(house.runner(name))
            harms[f"zygote of {name}"] = lambda name=name: house.kill_with_children(house.zygote(name))
            harms[f"attempt of {name}"] = lambda name=name: house.kill([house.attempt(name, rng)])
        harms["database"] = lambda: database.away(self.away_seconds)
        if broker is not None:
            harms["broker"] = broker.restart
        return harms


def _restart(house: House, name: str) -> Harm:
    def harm() -> None:
        house.kill_process(name)
        house.start(name)

    return harm


def _rounds(harms: dict[str, Harm], rng: random.Random) -> Iterator[tuple[str, Harm]]:
    while True:
        names = sorted(harms)
        rng.shuffle(names)
        yield from ((name, harms[name]) for name in names)
