"""Refused requests as the exceptions that DAG files catch."""

from __future__ import annotations

from scheduler_app.sdk.exceptions import DagNotFound, DagRunAlreadyExists, DagRunNotFound, ParamValidationError

#: kind of a refused request (docs/borders.md §3) → the exception
KINDS: dict[str, type[Exception]] = {
    "DagNotFound": DagNotFound,
    "DagRunNotFound": DagRunNotFound,
    "DagRunAlreadyExists": DagRunAlreadyExists,
    "ParamValidation": ParamValidationError,
}


def as_known(error: Exception) -> Exception:
    """The exception of a refusal's ``kind``, or the error itself."""
    kind = KINDS.get(getattr(error, "kind", ""))
    return error if kind is None else kind(str(error))
