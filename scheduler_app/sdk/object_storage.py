"""ObjectStoragePath is not part of this package: using it says what to do instead."""

from __future__ import annotations

from typing import Any

_INSTEAD = (
    "This scheduler has no object storage of its own: use fsspec or universal_pathlib (UPath) in the task, "
    "with the credentials of a connection."
)


class ObjectStoragePath:
    """Raises ImportError when made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> ObjectStoragePath:
        raise ImportError(_INSTEAD)


class ObjectStore:
    """Raises ImportError when made."""

    def __new__(cls, *args: Any, **kwargs: Any) -> ObjectStore:
        raise ImportError(_INSTEAD)


def attach(*args: Any, **kwargs: Any) -> None:
    raise ImportError(_INSTEAD)
