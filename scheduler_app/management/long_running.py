"""What the commands of long-running processes share: the port of their metrics."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError, CommandParser

from scheduler_app import inspection, proc
from scheduler_app.conf import conf


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("--metrics-port", type=int, help="serve metrics here (default: SCHEDULER_METRICS_PORT)")


@contextlib.contextmanager
def inspected(options: dict[str, Any]) -> Iterator[None]:
    """The process serves its metrics, where a port is given, for the time of the block; it has loaded what it needs."""
    proc.keep_what_is_loaded()
    values, port = conf(), options["metrics_port"]
    try:
        serving = inspection.metrics_served(
            values.metrics_host, values.metrics_port if port is None else port, values.metrics_token
        )
        with serving:
            yield
    except inspection.InspectionError as error:
        raise CommandError(str(error)) from error
