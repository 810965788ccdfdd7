"""While a DAG file is read it may ask for Variables and Connections; what it learns that is secret stays masked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scheduler_app.attempt_log import Masks
from scheduler_app.sdk.runtime import set_port
from scheduler_app.usercode.port import WirePort
from scheduler_app.wire import BlockingChannel


@contextmanager
def asking(channel: BlockingChannel) -> Iterator[Masks]:
    """Questions go over this channel; the masks are filled with the secrets among the answers."""
    masks = Masks()
    set_port(WirePort(channel, masks))
    try:
        yield masks
    finally:
        set_port(None)


def masked(result: dict[str, Any], masks: Masks) -> dict[str, Any]:
    """A parse result whose messages, which people read, hide those secrets."""
    return result | {name: masks.clean_all(result[name]) for name in ("import_error", "dag_errors", "warnings")}
