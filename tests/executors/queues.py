"""What a test leaves at a broker that others use too: nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kombu import Connection


@contextlib.contextmanager
def cleared(url: str, queue: str) -> Iterator[None]:
    """The queue is gone from its broker afterwards."""
    try:
        yield
    finally:
        with Connection(url) as connection:
            if url.startswith("redis"):
                client = connection.default_channel.client
                keys = [*client.keys(f"{queue}*"), f"_kombu.binding.{queue}", f"_kombu.binding_permanent.{queue}"]
                client.delete(*keys)
            else:
                channel = connection.channel()
                channel.queue_delete(queue)
                channel.exchange_delete(queue)
