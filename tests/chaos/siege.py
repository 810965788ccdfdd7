"""Harm without end: every few seconds somebody is killed, until the work is done all the same."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from .house import House


def _process(name: str) -> Callable[[House], None]:
    def kill(house: House) -> None:
        house.kill_process(name)
        house.start(name)

    return kill


def _runner(house: House, name: str) -> None:
    runner = house.runner(name)
    house.kill([runner], [runner])


def _zygote(house: House, name: str) -> None:
    zygote = house.zygote(name)
    house.kill([zygote], [zygote])


def besiege(house: House, every_seconds: float, is_over: Callable[[], bool], rng: random.Random) -> dict[str, int]:
    """What was killed, and how often. A victim that is still starting is spared."""
    holders = [name for name in house.processes if name.startswith("worker")]
    holders = holders or [name for name in house.processes if name.startswith("scheduler")]
    harms: dict[str, Callable[[House], None]] = {name: _process(name) for name in house.processes}
    for name in holders:
        harms[f"runner of {name}"] = lambda house, name=name: _runner(house, name)
        harms[f"zygote of {name}"] = lambda house, name=name: _zygote(house, name)
    killed: dict[str, int] = {}
    while not is_over():
        harm = rng.choice(sorted(harms))
        try:
            harms[harm](house)
            killed[harm] = killed.get(harm, 0) + 1
        except (LookupError, ValueError):
            pass
        until = time.monotonic() + every_seconds
        while time.monotonic() < until and not is_over():
            time.sleep(0.1)
    return killed
