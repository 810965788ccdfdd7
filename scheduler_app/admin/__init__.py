"""The Django admin: what the scheduler derives is read there, what people decide is changed, through ``actions``."""

from . import audit, callback, connection, dag, job, limit, parse_error, pool, run, task, variable

__all__ = ["audit", "callback", "connection", "dag", "job", "limit", "parse_error", "pool", "run", "task", "variable"]
