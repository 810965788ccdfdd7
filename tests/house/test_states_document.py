"""docs/states.md is what the table of legal moves says."""

from __future__ import annotations

from scheduler_app.engine import states
from scheduler_app.management.commands.states import DOCUMENT, document


def test_the_document_is_drawn_from_the_table() -> None:
    assert DOCUMENT.read_text() == document()


def test_no_verb_of_the_loop_leaves_a_finished_state_but_the_one_that_takes_back_a_removal() -> None:
    leaving = {verb for verb, (sources, _) in states.TASK_VERBS.items() if sources & states.FINISHED}
    assert leaving == {"restore"}
    assert {verb for verb, (sources, _) in states.RUN_VERBS.items() if sources & states.RUN_FINISHED} == set()


def test_every_state_can_be_reached_and_every_open_state_can_be_left() -> None:
    moves = states.task_moves()
    assert {target for _, target in moves} == set(states.TASK_STATES)
    assert {source for source, _ in moves} >= states.UNFINISHED
