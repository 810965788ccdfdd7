"""How our own processes log: one line a record to standard error, or one JSON object a line."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

_TEXT = "%(asctime)s %(levelname)-7s %(name)s: %(message)s"
_STANDARD = frozenset(logging.LogRecord("", 0, "", 0, "", (), None).__dict__) | {"message", "asctime"}


class JsonFormatter(logging.Formatter):
    """One JSON object a record: time, level, logger, message, exception, and whatever was given as ``extra``."""

    def format(self, record: logging.LogRecord) -> str:
        document: dict[str, Any] = {
            "timestamp": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        if record.exc_info:
            document["exception"] = self.formatException(record.exc_info)
        document |= {key: value for key, value in record.__dict__.items() if key not in _STANDARD}
        return json.dumps(document, default=str)


def logging_config(level: str, *, as_json: bool) -> dict[str, Any]:
    """A ``LOGGING`` dict: our loggers at ``level``, everybody else's from WARNING up."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {"format": _TEXT},
            "json": {"()": f"{__name__}.JsonFormatter"},
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json" if as_json else "text"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {
            "scheduler_app": {"level": level},
            "api": {"level": level},
            "scheduler_app_api": {"level": level},
            "gunicorn.error": {"level": level, "propagate": True},
        },
    }
