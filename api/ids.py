"""The API's id of a task instance is a UUID; ours is a number. One is written in the other, both ways."""

from __future__ import annotations

import uuid

_PREFIX = "00000000-0000-7000-8000-"


def to_uuid(key: int) -> str:
    """Our key (0 … 2⁴⁸−1) as the text of a UUID of version 7."""
    return f"{_PREFIX}{key:012x}"


def from_uuid(text: str) -> int:
    """Our key of such a text. ValueError for any other UUID or text."""
    canonical = str(uuid.UUID(text))
    if not canonical.startswith(_PREFIX):
        raise ValueError(f"{text} is no id of a task instance")
    return int(canonical[len(_PREFIX) :], 16)
