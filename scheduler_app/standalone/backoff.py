"""How long a component that died waits for its next start. Pure."""

from __future__ import annotations

from random import Random

FIRST_SECONDS = 0.5
MOST_SECONDS = 30.0
#: A component that lived this long was well: its next death is a first one.
HEALTHY_SECONDS = 30.0


def failures_in_a_row(before: int, lived_seconds: float) -> int:
    """How many deaths in a row this one makes."""
    return 1 if lived_seconds >= HEALTHY_SECONDS else before + 1


def restart_delay(failures: int, rng: Random) -> float:
    """Seconds until the next start: doubled with each failure up to a cap, and spread by a quarter each way.

    The spread keeps components that died of the same cause from coming back in step.
    """
    delay = min(FIRST_SECONDS * 2 ** min(failures - 1, 16), MOST_SECONDS)
    return delay * rng.uniform(0.75, 1.25)
