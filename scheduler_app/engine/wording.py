"""Numbers in sentences."""

from __future__ import annotations


def counted(n: int, thing: str) -> str:
    """ "1 task", "2 tasks": for nouns whose plural ends in s."""
    return f"{n} {thing}" if n == 1 else f"{n} {thing}s"
