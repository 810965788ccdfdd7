"""Deadlines: by when a run should be done, and what is called when it is not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable as Function
from typing import Any

from scheduler_app.sdk import timezone


class Callback:
    """A function by its dotted path, with keyword arguments."""

    def __init__(self, callback_callable: Function[..., Any] | str, kwargs: dict[str, Any] | None = None) -> None:
        if not isinstance(callback_callable, str) and not callable(callback_callable):
            raise TypeError(f"A callback is a function or its dotted path, not {callback_callable!r}.")
        self.path = callback_callable if isinstance(callback_callable, str) else _path(callback_callable)
        self.kwargs = dict(kwargs or {})

    def to_doc(self) -> dict[str, Any]:
        from scheduler_app.sdk.serialize import plain

        return {"path": self.path, "kwargs": plain(self.kwargs), "sync": isinstance(self, SyncCallback)}


def _path(function: Any) -> str:
    if not hasattr(function, "__qualname__"):
        function = type(function)
    if "<" in function.__qualname__:
        raise ValueError(
            f"A deadline's callback must be importable; {function.__qualname__} is local: define it at module level."
        )
    return f"{function.__module__}.{function.__qualname__}"


class SyncCallback(Callback):
    """Called in a task process."""

    def __init__(
        self, callback_callable: Any, kwargs: dict[str, Any] | None = None, executor: str | None = None
    ) -> None:
        super().__init__(callback_callable, kwargs)
        self.executor = executor


class AsyncCallback(Callback):
    """Called in the triggerer."""


class Reference:
    """The moment from which a deadline counts."""

    def __init__(self, kind: str, **details: Any) -> None:
        self.kind, self.details = kind, details

    def to_doc(self) -> dict[str, Any]:
        return {"kind": self.kind, **self.details}


class DeadlineReference:
    """The references that there are."""

    DAGRUN_LOGICAL_DATE = Reference("dagrun_logical_date")
    DAGRUN_QUEUED_AT = Reference("dagrun_queued_at")

    @staticmethod
    def FIXED_DATETIME(moment: dt.datetime) -> Reference:
        return Reference("fixed_datetime", at=timezone.convert_to_utc(moment).isoformat())

    @staticmethod
    def AVERAGE_RUNTIME(max_runs: int = 0, min_runs: int | None = None) -> Reference:
        return Reference(
            "average_runtime", max_runs=max_runs or 10, min_runs=min_runs if min_runs is not None else (max_runs or 10)
        )


class DeadlineAlert:
    """``callback`` is called once when the run is not done ``interval`` after ``reference``."""

    def __init__(
        self,
        reference: Reference,
        interval: dt.timedelta,
        callback: Callback,
        name: str | None = None,
    ) -> None:
        if not isinstance(callback, Callback):
            raise ValueError("A deadline's callback is a SyncCallback or an AsyncCallback.")
        self.reference, self.interval, self.callback, self.name = reference, interval, callback, name

    def to_doc(self) -> dict[str, Any]:
        document = {
            "reference": self.reference.to_doc(),
            "interval": self.interval.total_seconds(),
            "callback": self.callback.to_doc(),
        }
        return {**document, "name": self.name} if self.name else document
