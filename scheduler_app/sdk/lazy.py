"""A value that is asked for only when it is used; it then behaves like the value."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

_UNKNOWN = object()


class Lazy:
    """Stands for ``resolve()``."""

    __slots__ = ("_resolve", "_value")

    def __init__(self, resolve: Callable[[], Any]) -> None:
        self._resolve, self._value = resolve, _UNKNOWN

    def __wrapped__(self) -> Any:
        if self._value is _UNKNOWN:
            self._value = self._resolve()
        return self._value

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__(), name)

    def __repr__(self) -> str:
        return "<not asked for yet>" if self._value is _UNKNOWN else repr(self._value)

    def __str__(self) -> str:
        return str(self.__wrapped__())

    def __format__(self, spec: str) -> str:
        return format(self.__wrapped__(), spec)

    def __bool__(self) -> bool:
        return bool(self.__wrapped__())

    def __eq__(self, other: object) -> bool:
        return bool(self.__wrapped__() == other)

    def __hash__(self) -> int:
        return hash(self.__wrapped__())

    def __lt__(self, other: Any) -> Any:
        return self.__wrapped__() < other

    def __le__(self, other: Any) -> Any:
        return self.__wrapped__() <= other

    def __gt__(self, other: Any) -> Any:
        return self.__wrapped__() > other

    def __ge__(self, other: Any) -> Any:
        return self.__wrapped__() >= other

    def __add__(self, other: Any) -> Any:
        return self.__wrapped__() + other

    def __sub__(self, other: Any) -> Any:
        return self.__wrapped__() - other

    def __rsub__(self, other: Any) -> Any:
        return other - self.__wrapped__()

    def __getitem__(self, key: Any) -> Any:
        return self.__wrapped__()[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.__wrapped__())

    def __len__(self) -> int:
        return len(self.__wrapped__())
