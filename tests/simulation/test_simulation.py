"""Seeds through the simulated world; any failure prints its seed, and ``python -m tests.simulation`` replays it."""

from __future__ import annotations

import os

import pytest

from .play import play

#: In CI 300 seeds are played by ``python -m tests.simulation``; here a few, so that every run of the tests has some.
SEEDS = int(os.environ.get("SCHEDULER_TEST_SEEDS", "12"))


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_seed_breaks_an_invariant(seed: int) -> None:
    world = play(seed, steps=150)
    assert world.step_number == 150


@pytest.mark.django_db
def test_the_same_seed_gives_the_same_history() -> None:
    assert play(7, steps=80).history == play(7, steps=80).history
