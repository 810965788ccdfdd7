"""One transaction (or one phase) of one actor of the world, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Deed:
    """``work`` touches the database alone and may run on another connection; ``then`` tells the world of its result.

    ``actor`` does nothing else meanwhile. ``killed``: what becomes of it when its process is killed in the middle; None
    where that makes no difference (a person's request either commits or not).
    """

    work: Callable[[], Any]
    then: Callable[[Any], str] = str
    actor: Any = None
    killed: Callable[[], None] | None = None
