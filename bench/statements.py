"""Where the database's time goes, by statement: wall as the process sees it, and CPU of the database's process.

The wall of a statement depends on the machine's load, its CPU hardly: it is read from the kernel around each statement,
in nanoseconds, where the database runs on this machine (Linux).
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

#: What is the same before every kept plan, and the number that its name ends in.
_KEPT = re.compile(r"SET LOCAL plan_cache_mode = \w+; EXECUTE scheduler_\w+?_\d+|%\(\w+\)s(::\w+(\[\])?)?,? ?")


class Execution(NamedTuple):
    seconds: float
    db_cpu: float


def _database_cpu() -> Any:
    """Reads the seconds that the database's process has been on a processor; always 0 where that cannot be known."""
    from scheduler_app.models import db

    clock = Path(f"/proc/{db.fetch('SELECT pg_backend_pid()')[0][0]}/schedstat")
    if not clock.exists():
        return lambda: 0.0
    return lambda: int(clock.read_text().split()[0]) / 1e9


@contextlib.contextmanager
def watch() -> Iterator[dict[str, list[Execution]]]:
    """Collects {the statement's beginning: its executions} while the block runs."""
    from scheduler_app.models import db

    seen: dict[str, list[Execution]] = {}
    cpu = _database_cpu()

    def wrapper(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        before, began = cpu(), time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            ended = time.perf_counter()
            name = _KEPT.sub("", " ".join(sql.split()))[:110]
            seen.setdefault(name, []).append(Execution(ended - began, cpu() - before))

    with db.connection().execute_wrapper(wrapper):
        yield seen


def table(seen: dict[str, list[Execution]], rows: int = 20) -> str:
    """The costliest statements: total ms, calls, ms a call, ms of the database's CPU a call."""
    ranked = sorted(seen.items(), key=lambda item: -sum(one.seconds for one in item[1]))[:rows]
    return "\n".join(_line(sql, executions) for sql, executions in ranked)


def _line(sql: str, executions: list[Execution]) -> str:
    seconds, cpu = (sum(column) * 1000 for column in zip(*executions, strict=True))
    count = len(executions)
    return f"{seconds:9.1f} ms {count:6} x {seconds / count:8.3f}  {cpu / count:8.3f} cpu  {sql}"
