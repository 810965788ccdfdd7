"""What a function takes, read from its code: the same as ``inspect.signature`` says."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from scheduler_app.sdk.context import parameter_kinds


def nothing() -> None: ...
def plain(a: int, b: int = 1) -> None: ...
def by_place_only(a: int, b: int, /, c: int, *, d: int = 2) -> None: ...
def many(a: int, *args: int, d: int, e: int = 1, **kwargs: int) -> None: ...
def only_rest(*args: int, **kwargs: int) -> None: ...
def with_locals(a: int, *, b: int) -> int:
    c = [a, b]
    return sum(c)


@functools.wraps(plain)
def wrapped(*args: Any, **kwargs: Any) -> None: ...


class Callee:
    def __call__(self, a: int, *, b: int) -> None: ...
    def method(self, ti: Any, **context: Any) -> None: ...


def signed(*args: Any) -> None: ...


signed.__signature__ = inspect.signature(plain)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "function",
    [
        nothing,
        plain,
        by_place_only,
        many,
        only_rest,
        with_locals,
        wrapped,
        signed,
        Callee(),
        Callee().method,
        functools.partial(plain, 1),
        lambda ti, ds=None: None,
        print,
    ],
)
def test_the_kinds_are_those_of_the_signature(function: Callable[..., Any]) -> None:
    expected = {name: parameter.kind for name, parameter in inspect.signature(function).parameters.items()}
    found = parameter_kinds(function)
    assert found == expected
    assert list(found) == list(expected)
