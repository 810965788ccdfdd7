"""Where the database's time goes: wall time by statement, as the process sees it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def watch() -> Iterator[dict[str, list[float]]]:
    """Collects {beginning of the statement: seconds of each execution} while the block runs."""
    from scheduler_app.models import db

    seen: dict[str, list[float]] = {}

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        began = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            seen.setdefault(" ".join(sql.split())[:110], []).append(time.perf_counter() - began)

    with db.connection().execute_wrapper(wrapper):
        yield seen


def table(seen: dict[str, list[float]], rows: int = 20) -> str:
    """The costliest statements: total ms, calls, ms a call."""
    ranked = sorted(seen.items(), key=lambda item: -sum(item[1]))[:rows]
    return "\n".join(
        f"{sum(times) * 1000:9.1f} ms {len(times):6} x {sum(times) / len(times) * 1000:8.3f}  {sql}"
        for sql, times in ranked
    )
