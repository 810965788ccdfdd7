"""The same world under Hypothesis, which draws what happens and shrinks a history that breaks an invariant."""

from __future__ import annotations

import random
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from . import attempts, schedulers, triggerers
from .aside import Aside
from .play import opened
from .world import FAULTS, World

pytestmark = pytest.mark.django_db(transaction=True)
RANDOMS = st.randoms(use_true_random=False)


class Machine(RuleBasedStateMachine):
    """Each rule is an actor of the world; what it picks is drawn, so that it can be made simpler."""

    aside: ClassVar[Aside]
    world: World

    @initialize(seed=st.integers(0, 200))
    def begin(self, seed: int) -> None:
        """The seed chooses the DAGs; all that follows is drawn."""
        self.world = opened(seed, self.aside, schedulers=2)

    @rule(rng=RANDOMS, act=st.sampled_from([schedulers.phase, attempts.begin, attempts.end]))
    def work_is_done(self, rng: Any, act: Any) -> None:
        self._act(rng, act)

    @rule(rng=RANDOMS, passes=st.integers(1, 3))
    def a_scheduler_goes_through_its_table(self, rng: Any, passes: int) -> None:
        self.world.rng = rng
        for _ in range(passes * 15):
            self.world.act(schedulers.phase)

    @rule(rng=RANDOMS, act=st.sampled_from([triggerers.act, World._time_passes]))
    def time_passes(self, rng: Any, act: Any) -> None:
        self._act(rng, act)

    @rule(rng=RANDOMS, act=st.sampled_from([act for _, act in FAULTS]))
    def something_is_done_or_breaks(self, rng: Any, act: Any) -> None:
        self._act(rng, act)

    @rule(rng=RANDOMS)
    def what_stood_still_goes_on(self, rng: Any) -> None:
        if self.world.under_way is not None:
            self.world.rng = rng
            self.world.note("it goes on", self.world.land())

    def _act(self, rng: Any, act: Any) -> None:
        self.world.rng = rng
        self.world.act(act)

    def teardown(self) -> None:
        """Whatever was drawn, everything comes to an end."""
        if hasattr(self, "world"):
            self.world.rng = random.Random(0)
            self.world.finish()


def test_no_drawn_history_breaks_an_invariant(aside: Aside) -> None:
    Machine.aside = aside
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=40,
            derandomize=True,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
        ),
    )
