"""The table of states and moves."""

from __future__ import annotations

from scheduler_app.engine import states
from scheduler_app.engine.readiness import LOOKED_AT


def test_every_move_leads_from_and_to_a_state_there_is() -> None:
    known = set(states.TASK_STATES)
    assert {state for move in states.task_moves() for state in move} == known
    assert {state for move in states.run_moves() for state in move} == set(states.RUN_STATES)


def test_the_loop_moves_no_finished_instance_or_run_but_what_it_removed_itself() -> None:
    leaving = {verb: sources for verb, (sources, _) in states.TASK_VERBS.items() if sources & states.FINISHED}
    assert leaving == {"restore": {states.REMOVED}}
    assert not {verb for verb, (sources, _) in states.RUN_VERBS.items() if sources & states.RUN_FINISHED}


def test_what_a_look_may_do_to_an_instance_is_legal_from_every_state_that_it_looks_at() -> None:
    for verb in ("schedule", "skip", "upstream_fail", "remove"):
        assert states.TASK_VERBS[verb][0] >= LOOKED_AT


def test_every_unfinished_state_has_a_way_to_an_end() -> None:
    verbs = states.TASK_VERBS.values()
    reach = set(states.FINISHED)
    while True:
        more = {source for sources, target in verbs if target in reach for source in sources} | reach
        if more == reach:
            break
        reach = more
    assert reach == set(states.TASK_STATES)


def test_what_counts_against_limits_is_a_part_of_what_has_not_ended() -> None:
    assert states.WITH_PROCESS < states.OCCUPYING < states.ACTIVE < states.UNFINISHED
    assert set(states.TASK_STATES) == states.UNFINISHED | states.FINISHED
    assert not states.UNFINISHED & states.FINISHED
