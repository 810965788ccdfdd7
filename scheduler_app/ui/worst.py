"""One state for many task instances: the one that a person must see first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: Worst first; a success beside skipped ones is a success.
ORDER: Final = (
    "failed", "upstream_failed", "up_for_retry", "running", "restarting", "queued", "scheduled", "up_for_reschedule",
    "deferred", "none", "success", "skipped", "removed",
)  # fmt: skip
_PLACE: Final = {state: place for place, state in enumerate(ORDER)}


def worst(states: Iterable[str]) -> str:
    """The worst of some states ("none" for no state). ValueError when there is none to choose from."""
    return min(states, key=lambda state: _PLACE.get(state, len(ORDER)))
