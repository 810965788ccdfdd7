"""Database sessions of Airflow 2: importable, so that a file loads; opening one says what to use in its place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

_INSTEAD = (
    "Task code has no database session: use the Variable, Connection and XCom classes, the methods of ti and dag_run, "
    "or the REST API."
)
NEW_SESSION: Any = None


def Session(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(_INSTEAD)


def create_session(*args: Any, **kwargs: Any) -> NoReturn:
    raise RuntimeError(_INSTEAD)


def provide_session(function: Callable[..., Any]) -> Callable[..., Any]:
    """Calling the function without a session of its own raises RuntimeError."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("session") is None:
            raise RuntimeError(f"{function.__qualname__}() wants a database session. {_INSTEAD}")
        return function(*args, **kwargs)

    return wrapper
