"""Seeds through the simulated world; any failure prints its seed, and ``python -m tests.simulation`` replays it."""

from __future__ import annotations

import os

import pytest

from scheduler_app.models import db

from .aside import Aside
from .play import opened, play

pytestmark = pytest.mark.django_db(transaction=True)
#: Played by every run of the tests; ``python -m tests.simulation`` plays as many as one likes.
SEEDS = int(os.environ.get("SCHEDULER_TEST_SEEDS", "40"))
#: Seeds that are played in one test.
TOGETHER = 10


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_no_seed_breaks_an_invariant(aside: Aside, first: int) -> None:
    for seed in range(first, min(first + TOGETHER, SEEDS)):
        world = play(opened(seed, aside, schedulers=3), steps=300)
        assert world.step_number >= 300
        assert not world.ledger.reports


def test_the_same_seed_gives_the_same_history(aside: Aside) -> None:
    first, again = (play(opened(7, aside), steps=200).history for _ in range(2))
    differing = [number for number, lines in enumerate(zip(first, again, strict=False)) if lines[0] != lines[1]]
    assert not differing, (first[differing[0] - 5 : differing[0] + 3], again[differing[0] : differing[0] + 3])
    assert first == again


def test_a_world_that_broke_off_in_the_middle_leaves_nothing_standing(aside: Aside) -> None:
    assert aside.begin(lambda: db.fetch("SELECT 1"), stop_at=1)
    opened(1, aside)
    assert not aside.is_open
