"""Limits on what the processes of one attempt may take: their names, units and defaults.

A task has its own as ``executor_config={"limits": {"memory_mb": 512, "cpu_seconds": 60, "open_files": 256}}``; what it
does not name is the scheduler's setting.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: The key in ``executor_config``.
KEY = "limits"
#: Fewer are not enough to begin: the attempt's own wire, log and pipes, and what Python opens to import.
LEAST_OPEN_FILES = 32


@dataclass(frozen=True, slots=True)
class Resources:
    """0 is no limit. Memory counts from what the DAG file took when it was imported, in each process by itself."""

    memory_mb: float = 0
    cpu_seconds: float = 0
    open_files: int = 0


_NAMES = tuple(spec.name for spec in dataclasses.fields(Resources))


def of(executor_config: Any, default: Resources) -> Resources:
    """The limits of a task. Raises ValueError, in words for the author."""
    own = executor_config.get(KEY) if isinstance(executor_config, Mapping) else None
    return default if own is None else read(own, default)


def read(own: Any, default: Resources = Resources()) -> Resources:
    """What a document names, the rest from `default`. Raises ValueError."""
    if not isinstance(own, Mapping):
        raise ValueError(f"executor_config['limits'] is a dict of {', '.join(_NAMES)}, not {own!r}.")
    for name, value in own.items():
        if name not in _NAMES:
            near = difflib.get_close_matches(str(name), _NAMES, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"executor_config['limits'] has no {name!r}: it takes {', '.join(_NAMES)}.{hint}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ValueError(f"executor_config['limits'][{name!r}] is a number, 0 for no limit, not {value!r}.")
    files = own.get("open_files", 0)
    if files != int(files) or 0 < files < LEAST_OPEN_FILES:
        raise ValueError(
            f"executor_config['limits']['open_files'] is a whole number, {LEAST_OPEN_FILES} or more (0 for no limit), "
            f"not {files!r}."
        )
    return dataclasses.replace(default, **own)


def document(limits: Resources) -> dict[str, Any]:
    """As :func:`read` takes it; empty when nothing is limited."""
    return {name: value for name in _NAMES if (value := getattr(limits, name))}
