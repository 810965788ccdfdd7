"""A request of an attempt that is not done."""

from __future__ import annotations


class Refusal(Exception):
    """The task gets an exception of that kind."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
