"""The results of all instances of a mapped task, fetched when first looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class LazyXComSequence(Sequence[Any]):
    """What was pushed, by map index; instances that pushed nothing are not in it."""

    #: whether this process made one at all: only then are results searched for them
    exist = False

    def __init__(self, ti: Any, task_id: str, key: str) -> None:
        self._ti, self._task_id, self._key = ti, task_id, key
        self._values: list[Any] | None = None
        LazyXComSequence.exist = True

    def _all(self) -> list[Any]:
        if self._values is None:
            self._values = self._ti.find_xcoms(self._task_id, self._key)
        return self._values

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and not isinstance(other, str) and self._all() == list(other)

    def __repr__(self) -> str:
        return f"LazyXComSequence({self._task_id!r}, {'not fetched' if self._values is None else self._values!r})"

    def __str__(self) -> str:
        return str(self._all())
