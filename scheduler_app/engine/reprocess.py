"""What a backfill does with a slot: make its run, do it again, or leave it, by what is there already."""

from __future__ import annotations

from typing import Final

from scheduler_app.engine import states

#: Outcomes of a slot, as people read them.
CREATED: Final = "created"
CLEARED: Final = "cleared"
ALREADY_EXISTS: Final = "already exists"
IN_FLIGHT: Final = "in flight"

#: Whose runs are done again, by the behaviour that was asked for.
_AGAIN: Final[dict[str, frozenset[str]]] = {
    "none": frozenset(),
    "failed": frozenset({states.FAILED}),
    "completed": frozenset({states.SUCCESS, states.FAILED}),
}


def of_slot(state: str | None, behavior: str) -> str:
    """``state``: of the run that the slot has, None where there is none. KeyError for an unknown behaviour."""
    if state is None:
        return CREATED
    if state not in states.RUN_FINISHED:
        return IN_FLIGHT
    return CLEARED if state in _AGAIN[behavior] else ALREADY_EXISTS
