"""LoggingMixin: a ``log`` for classes of authors; ``mask_secret`` for their values."""

from __future__ import annotations

import logging
from typing import Any

from scheduler_app.sdk.runtime import current_port, has_port


class LoggingMixin:
    """``self.log`` writes to the task's log."""

    _log_config_logger_name: str | None = None

    def __init__(self, context: Any = None) -> None:
        super().__init__()

    @property
    def log(self) -> logging.Logger:
        kind = type(self)
        return logging.getLogger(f"{kind.__module__}.{kind.__name__}")

    @property
    def logger(self) -> logging.Logger:
        return self.log


def mask_secret(secret: Any, name: str | None = None) -> None:
    """Hides a value in the log from here on; outside of a running task there is no log to hide it in."""
    if has_port() and secret:
        current_port().mask_secret(secret)
